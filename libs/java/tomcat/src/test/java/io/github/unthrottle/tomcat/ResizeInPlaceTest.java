package io.github.unthrottle.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Pools;
import io.github.unthrottle.budget.RealLimit;
import io.github.unthrottle.budget.TaskClass;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.junit.jupiter.api.Test;

/** Tomcat and the JDK's pools in a cgroup of this kernel, whose limit changes while they work. */
class ResizeInPlaceTest {
    private static final int LARGEST = 7;

    @Test
    void poolsFollowALimitThatChanges() throws Exception {
        int version = Runtime.version().feature();
        boolean wide = Runtime.getRuntime().availableProcessors() > 4; // else 4 CPUs are no limit
        List<String> lines = RealLimit.run(Program.class);
        String small = "permits 1, tomcat 8, work 1, at once 1, common 1";
        assertEquals(List.of("0.5: " + small, "1.5: permits 2, tomcat 16, work 2, at once 2, common " + (version >= 19 ? 2 : 1),
                "4.0: permits " + (wide ? "4, tomcat 30, work 4, at once 4" : "0, tomcat 30, work 8, at once 8") + ", common "
                        + (version < 19 ? 1 : wide ? 4 : LARGEST), "0.5: " + small), RealLimit.sizes(lines), lines::toString);
        List<String> warnings = lines.stream().filter(line -> line.startsWith("warned: ")).toList();
        String said = String.join("\n", warnings);
        assertTrue(said.contains("the collector has 1 threads, 2 fit the limit: the JVM takes their number at its start; restart with "
                + "-XX:ParallelGCThreads=2"), said);
        assertEquals(version < 19, said.contains("common has 1 threads, 2 fit the limit: Java " + version
                + " takes the size of a ForkJoinPool at its start; restart with -Djava.util.concurrent.ForkJoinPool.common.parallelism=2"), said);
        assertEquals(version < 19 ? 2 : 1, warnings.size(), said);
    }

    /** The program of the test. */
    static final class Program {
        private static final int TASKS = 24;

        private Program() {}

        public static void main(String[] args) throws Exception {
            CpuBudget budget = CpuBudget.setup(new CpuBudget.Options(text -> System.out.println("warned: " + text), false));
            Tomcat tomcat = new Tomcat();
            tomcat.setBaseDir(System.getProperty("java.io.tmpdir"));
            tomcat.setPort(0);
            Connector connector = tomcat.getConnector();
            connector.setProperty("address", "127.0.0.1");
            connector.setProperty("maxThreads", "30");
            tomcat.start();
            var http = (org.apache.tomcat.util.threads.ThreadPoolExecutor) connector.getProtocolHandler().getExecutor();
            ThreadPoolExecutor work = (ThreadPoolExecutor) Executors.newFixedThreadPool(8);
            ForkJoinPool common = ForkJoinPool.commonPool();
            budget.follow(new TomcatPool(connector), TaskClass.APP, 8);
            budget.follow(Pools.of("work", work), TaskClass.APP, 1);
            budget.follow(Pools.of("common", common), TaskClass.APP, 1, LARGEST);
            budget.follow(Pools.collector(), TaskClass.APP, 1, LARGEST);
            RealLimit.change(budget, args[0], () -> work.getPoolSize() <= work.getMaximumPoolSize(),
                    () -> "permits " + budget.snapshot().of(TaskClass.APP).permits() + ", tomcat " + http.getMaximumPoolSize() + ", work "
                            + work.getMaximumPoolSize() + ", at once " + atOnce(work) + ", common " + common.getParallelism());
            System.exit(0);
        }

        /** How many tasks of a pool run at once at most. The first ones wait for each other, so that slowness does not part them. */
        private static int atOnce(ThreadPoolExecutor work) {
            AtomicInteger running = new AtomicInteger();
            AtomicInteger most = new AtomicInteger();
            CountDownLatch all = new CountDownLatch(work.getMaximumPoolSize());
            CountDownLatch done = new CountDownLatch(TASKS);
            for (int i = 0; i < TASKS; i++) {
                work.execute(() -> {
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    all.countDown();
                    await(all);
                    running.decrementAndGet();
                    done.countDown();
                });
            }
            await(done);
            return most.get();
        }

        private static void await(CountDownLatch latch) {
            try {
                if (!latch.await(1, TimeUnit.MINUTES)) {
                    throw new IllegalStateException("tasks did not end within a minute");
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
