package io.github.unthrottle.finagle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.twitter.finagle.Http;
import com.twitter.finagle.ListeningServer;
import com.twitter.finagle.Service;
import com.twitter.finagle.http.Request;
import com.twitter.finagle.http.Response;
import com.twitter.finagle.stats.NullStatsReceiver;
import com.twitter.util.Await;
import com.twitter.util.Future;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.TaskClass;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class BudgetOffloadTest {
    @Test
    void tasksRunWithinTheBudget() throws Exception {
        FakeLimit limit = new FakeLimit(2.5); // 2 permits
        ExecutorService pool = new BudgetOffload(limit.budget).newPool(8, 2000, NullStatsReceiver.get());
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(1000);
        for (int i = 0; i < 1000; i++) {
            pool.execute(() -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                running.decrementAndGet();
                done.countDown();
            });
        }
        done.await();
        assertTrue(most.get() <= 2, most::toString);
        pool.shutdown();
    }

    /** A task is never run by the thread that brings it, which is that of an event loop. */
    @Test
    void aFullQueueRejects() {
        FakeLimit limit = new FakeLimit(1);
        ExecutorService pool = new BudgetOffload(limit.budget).newPool(1, 1, NullStatsReceiver.get());
        CountDownLatch never = new CountDownLatch(1);
        Runnable task = () -> {
            try {
                never.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        };
        pool.execute(task);
        pool.execute(task);
        assertThrows(RejectedExecutionException.class, () -> pool.execute(task));
        pool.shutdownNow();
    }

    /** A real Finagle server finds the factory, and answers on its threads within the budget of the process. */
    @Test
    void aRealServerOffloadsToTheBudget() throws Exception {
        System.setProperty("com.twitter.finagle.offload.numWorkers", "3");
        CpuBudget budget = CpuBudget.ofProcess();
        Service<Request, Response> service = new Service<>() {
            @Override
            public Future<Response> apply(Request request) {
                Response r = Response.apply();
                r.setContentString(Thread.currentThread().getName() + " " + budget.snapshot().of(TaskClass.APP).running());
                return Future.value(r);
            }
        };
        ListeningServer server = Http.serve(new InetSocketAddress("127.0.0.1", 0), service);
        try {
            int port = ((InetSocketAddress) server.boundAddress()).getPort();
            HttpRequest ask = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/")).build();
            HttpResponse<String> r = HttpClient.newHttpClient().send(ask, HttpResponse.BodyHandlers.ofString());
            assertEquals(200, r.statusCode());
            assertTrue(r.body().matches("finagle/offload-\\d+ 1"), r.body());
        } finally {
            Await.result(server.close());
        }
    }
}
