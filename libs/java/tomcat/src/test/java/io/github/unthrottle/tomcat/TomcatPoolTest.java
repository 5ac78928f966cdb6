package io.github.unthrottle.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.TaskClass;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TomcatPoolTest {
    private final FakeLimit limit = new FakeLimit(2.5);

    private static Tomcat tomcat(Path folder) {
        Tomcat t = new Tomcat();
        t.setBaseDir(folder.toString());
        t.setPort(0);
        t.getConnector().setProperty("address", "127.0.0.1");
        return t;
    }

    @Test
    void aTomcatThatWorksFollowsTheLimit(@TempDir Path folder) throws LifecycleException {
        Tomcat t = tomcat(folder);
        Connector c = t.getConnector();
        c.setProperty("maxThreads", "30");
        t.start();
        ThreadPoolExecutor threads = (ThreadPoolExecutor) c.getProtocolHandler().getExecutor();
        limit.budget.follow(new TomcatPool(c), TaskClass.APP, 8);
        for (int[] want : new int[][] {{25, 16, 10}, {5, 8, 8}, {40, 30, 10}, {10, 8, 8}, {0, 30, 10}}) {
            limit.set(want[0] / 10.0);
            assertEquals(want[1], threads.getMaximumPoolSize());
            assertEquals(want[2], threads.getCorePoolSize());
        }
        t.stop();
        t.destroy();
    }

    @Test
    void anExecutorOfItsOwnIsSaid(@TempDir Path folder) throws LifecycleException {
        Tomcat t = tomcat(folder);
        ExecutorService own = Executors.newFixedThreadPool(3);
        t.getConnector().getProtocolHandler().setExecutor(own);
        t.start();
        limit.budget.follow(new TomcatPool(t.getConnector()), TaskClass.APP, 8, 30);
        assertEquals(1, limit.warnings().size());
        assertTrue(limit.warnings().get(0).contains("an Executor of its own runs its requests"), limit.warnings()::toString);
        t.stop();
        t.destroy();
        own.shutdown();
    }
}
