package io.github.unthrottle.jetty;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.TaskClass;
import java.util.List;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.junit.jupiter.api.Test;

class JettyPoolTest {
    @Test
    void aJettyThatWorksFollowsTheLimit() throws Exception {
        FakeLimit limit = new FakeLimit(2.5);
        QueuedThreadPool threads = new QueuedThreadPool(40, 8);
        Server server = new Server(threads);
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.start();
        int leased = threads.getThreadPoolBudget().getLeasedThreads();
        assertTrue(leased >= 2);
        limit.budget.follow(new JettyPool(threads), TaskClass.APP, 4, 30);
        for (int[] want : new int[][] {{25, 8}, {5, 4}, {200, 30}, {10, 4}, {0, 30}}) {
            limit.set(want[0] / 10.0);
            assertEquals(want[1] + leased, threads.getMaxThreads());
            assertEquals(Math.min(8, want[1] + leased), threads.getMinThreads());
        }
        assertEquals(List.of("the CPU limit is gone; the program runs on as without one"), limit.warnings());
        server.stop();
    }
}
