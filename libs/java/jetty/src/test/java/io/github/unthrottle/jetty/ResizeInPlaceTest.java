package io.github.unthrottle.jetty;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.RealLimit;
import io.github.unthrottle.budget.TaskClass;
import java.util.List;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.junit.jupiter.api.Test;

/** Jetty in a cgroup of this kernel, whose limit changes while it works. */
class ResizeInPlaceTest {
    @Test
    void aJettyFollowsALimitThatChanges() throws Exception {
        boolean wide = Runtime.getRuntime().availableProcessors() > 4; // else 4 CPUs are no limit
        List<String> lines = RealLimit.run(Program.class);
        assertEquals(List.of("0.5: 4 threads", "1.5: 8 threads", "4.0: " + (wide ? 16 : 30) + " threads", "0.5: 4 threads"),
                RealLimit.sizes(lines), lines::toString);
    }

    /** The program of the test. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            QueuedThreadPool threads = new QueuedThreadPool(40, 8);
            Server server = new Server(threads);
            ServerConnector connector = new ServerConnector(server, 1, 1);
            connector.setHost("127.0.0.1");
            server.addConnector(connector);
            server.start();
            int leased = threads.getThreadPoolBudget().getLeasedThreads();
            CpuBudget budget = CpuBudget.ofProcess();
            budget.follow(new JettyPool(threads), TaskClass.APP, 4, 30);
            // Threads above the most end one each idleTimeout, a minute, by Jetty itself: they are not waited for.
            RealLimit.change(budget, args[0], () -> true,
                    () -> threads.getMaxThreads() - leased + " threads");
            System.exit(0);
        }
    }
}
