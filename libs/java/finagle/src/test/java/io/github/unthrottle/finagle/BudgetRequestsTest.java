package io.github.unthrottle.finagle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.twitter.finagle.Http;
import com.twitter.finagle.ListeningServer;
import com.twitter.finagle.Service;
import com.twitter.finagle.http.Request;
import com.twitter.finagle.http.Response;
import com.twitter.util.Await;
import com.twitter.util.Future;
import com.twitter.util.Local;
import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class BudgetRequestsTest {
    private final ExecutorService threads = Executors.newCachedThreadPool(r -> new Thread(r, "of-the-budget"));

    @AfterEach
    void end() {
        threads.shutdownNow();
    }

    private static TaskClass classOf(Request r) {
        return r.uri().equals("/ping") ? TaskClass.IO : TaskClass.APP;
    }

    private static final Service<Request, Response> NAMES = new Service<>() {
        @Override
        public Future<Response> apply(Request request) {
            if (request.uri().equals("/broken")) {
                throw new IllegalStateException("of the service");
            }
            if (request.uri().equals("/checked")) {
                BudgetRequestsTest.<RuntimeException>sneak(new IOException("of a service in Scala"));
            }
            Response r = Response.apply();
            r.setContentString(Thread.currentThread().getName());
            return Future.value(r);
        }
    };

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneak(Throwable e) throws E {
        throw (E) e;
    }

    private static HttpResponse<String> get(ListeningServer server, String path) throws Exception {
        int port = ((InetSocketAddress) server.boundAddress()).getPort();
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(); // HTTP/2 resets the stream of what is rejected
        return client.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(), HttpResponse.BodyHandlers.ofString());
    }

    /** Over a real server: pings on its event loop, work on the budget's threads, failures as without the filter. */
    @Test
    void eachClassHasItsPlace() throws Exception {
        FakeLimit limit = new FakeLimit(2.5);
        var filter = new BudgetRequests<Request, Response>(limit.budget, threads, BudgetRequestsTest::classOf, Map.of());
        ListeningServer server = Http.serve(new InetSocketAddress("127.0.0.1", 0), filter.andThen(NAMES));
        try {
            assertTrue(get(server, "/ping").body().startsWith("finagle/netty4"), get(server, "/ping").body());
            assertEquals("of-the-budget", get(server, "/work").body());
            assertEquals(500, get(server, "/broken").statusCode());
            assertEquals(500, get(server, "/checked").statusCode());
            assertEquals("of-the-budget", get(server, "/work").body(), "a failure gives its permit back");
        } finally {
            Await.result(server.close());
        }
    }

    /** What would wait for longer than its objective is rejected at once, as Finagle's clients know it. */
    @Test
    void lateWorkIsRejected() throws Exception {
        FakeLimit limit = new FakeLimit(1);
        var filter = new BudgetRequests<Request, Response>(limit.budget, threads, BudgetRequestsTest::classOf, Map.of(TaskClass.APP, Duration.ofMillis(20)));
        // How fast tasks come to their turn is learnt from others: the first four took 10 ms each, and eight more are before the request.
        LinkedBlockingQueue<Permit> permits = new LinkedBlockingQueue<>();
        for (int i = 0; i < 12; i++) {
            limit.budget.acquire(TaskClass.APP, null, permits::add, null);
        }
        for (int i = 0; i < 4; i++) {
            Permit held = permits.take();
            limit.pass(10_000_000);
            held.close();
        }
        ListeningServer server = Http.serve(new InetSocketAddress("127.0.0.1", 0), filter.andThen(NAMES));
        try {
            assertEquals(503, get(server, "/work").statusCode());
            assertEquals(200, get(server, "/ping").statusCode());
        } finally {
            Await.result(server.close());
        }
    }

    /** What a request has of its own, as its trace, is with it on the other thread, and gone from there after it. */
    @Test
    void localsFollowTheRequest() throws Exception {
        FakeLimit limit = new FakeLimit(1);
        ExecutorService one = Executors.newSingleThreadExecutor();
        var filter = new BudgetRequests<String, String>(limit.budget, one, r -> TaskClass.APP, Map.of());
        Local<String> trace = new Local<>();
        Service<String, String> service = new Service<>() {
            @Override
            public Future<String> apply(String request) {
                return Future.value(trace.apply().getOrElse(() -> "none"));
            }
        };
        trace.update("of this request");
        assertEquals("of this request", Await.result(filter.andThen(service).apply("")));
        trace.clear();
        assertFalse(one.submit(() -> trace.apply().isDefined()).get());
        assertEquals("none", Await.result(filter.andThen(service).apply("")));
        one.shutdown();
    }
}
