package io.github.unthrottle.bench;

import com.twitter.finagle.Http;
import com.twitter.finagle.ListeningServer;
import com.twitter.finagle.Service;
import com.twitter.finagle.http.Request;
import com.twitter.finagle.http.Response;
import com.twitter.finagle.http.Status;
import com.twitter.util.Future;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import io.github.unthrottle.finagle.BudgetRequests;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A {@link Child} with Finagle. Its Offload Filter is set by properties of the JVM: with com.twitter.finagle.offload.numWorkers it runs all
 * requests on threads of Finagle's own, which is the variant "offloaded"; the one of unthrottle-finagle is then not on the class path.
 */
public final class FinagleService {
    private FinagleService() {}

    /** The life of a service. */
    public static void main(String[] variant) throws Exception {
        Child.live(() -> (InetSocketAddress) serve(service(variant[0])).boundAddress());
    }

    static ListeningServer serve(Service<Request, Response> service) {
        return Http.serve(new InetSocketAddress("127.0.0.1", 0), service);
    }

    /** The service of a variant. */
    static Service<Request, Response> service(String variant) {
        Service<Request, Response> plain = new Service<>() {
            @Override
            public Future<Response> apply(Request request) {
                return Future.value(answer(request));
            }
        };
        switch (variant) {
            case "inline", "offloaded":
                return plain;
            case "budget":
                ExecutorService threads = Executors.newCachedThreadPool(r -> {
                    Thread t = new Thread(r, "budget-app");
                    t.setDaemon(true);
                    return t;
                });
                return new BudgetRequests<Request, Response>(CpuBudget.ofProcess(), threads, r -> r.path().equals("/ping") ? TaskClass.IO : TaskClass.APP, Map.of())
                        .andThen(plain);
            default:
                throw new IllegalArgumentException(variant + ": there are inline, offloaded and budget");
        }
    }

    private static Response answer(Request request) {
        Response r = Response.apply();
        if (request.path().equals("/ping")) {
            r.setContentString("pong");
        } else if (Child.work(request.getParams("cpu_us"))) {
            r.setContentString(Thread.currentThread().getName());
        } else {
            r.status_$eq(Status.BadRequest());
        }
        return r;
    }
}
