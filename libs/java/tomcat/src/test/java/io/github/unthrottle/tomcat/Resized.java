package io.github.unthrottle.tomcat;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Pools;
import io.github.unthrottle.budget.Snapshot;
import io.github.unthrottle.budget.TaskClass;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;

/** A program that changes the limit of its own cgroup and says how its pools follow. Arguments: the quota's file, a folder. */
final class Resized {
    private static final int TASKS = 12;

    private final CpuBudget budget = CpuBudget.setup(new CpuBudget.Options(text -> System.out.println("warned: " + text), false));
    private final ThreadPoolExecutor work = (ThreadPoolExecutor) Executors.newFixedThreadPool(8);
    private final Connector connector;
    /** The limit that the pools follow. */
    private volatile Double followed;

    private Resized(String folder) throws Exception {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder);
        tomcat.setPort(0);
        connector = tomcat.getConnector();
        connector.setProperty("address", "127.0.0.1");
        connector.setProperty("maxThreads", "30");
        tomcat.start();
        budget.follow(new TomcatPool(connector), TaskClass.APP, 8);
        budget.follow(Pools.of("work", work), TaskClass.APP, 1);
        budget.follow(Pools.of("common", ForkJoinPool.commonPool()), TaskClass.APP, 1, 7);
        budget.follow(Pools.collector(), TaskClass.APP, 1, 7);
        budget.onChange(() -> followed = budget.snapshot().limitCpus()); // it is told after the pools
    }

    public static void main(String[] args) throws Exception {
        Resized program = new Resized(args[1]);
        program.say(0.5, 0, 0);
        for (double limit : new double[] {1.5, 0.5}) {
            Files.writeString(Path.of(args[0]), Long.toString(Math.round(limit * 100_000)));
            program.follow(limit);
        }
        System.exit(0);
    }

    /** Waits until the pools follow the limit, and counts the times that the library looked: what it saw is then another. */
    private void follow(double limit) throws InterruptedException {
        long begun = System.nanoTime();
        int looks = 0;
        Snapshot last = budget.snapshot();
        while (!Objects.equals(followed, limit) || work.getPoolSize() > work.getMaximumPoolSize()) {
            Thread.sleep(5);
            Snapshot now = budget.snapshot();
            if (!Objects.equals(now.usedCpus(), last.usedCpus()) || !Objects.equals(now.periods(), last.periods())) {
                looks++;
            }
            last = now;
        }
        say(limit, looks, (System.nanoTime() - begun) / 1_000_000);
    }

    private void say(double limit, int looks, long millis) throws InterruptedException {
        int http = ((org.apache.tomcat.util.threads.ThreadPoolExecutor) connector.getProtocolHandler().getExecutor()).getMaximumPoolSize();
        System.out.println("limit " + limit + " permits " + budget.snapshot().of(TaskClass.APP).permits() + " tomcat " + http + " work "
                + work.getMaximumPoolSize() + " at once " + atOnce() + " common " + ForkJoinPool.commonPool().getParallelism() + " looks "
                + looks + " ms " + millis);
    }

    /** How many tasks of the pool run at once at most. The first ones wait for each other, so that slowness does not part them. */
    private int atOnce() throws InterruptedException {
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(work.getMaximumPoolSize());
        CountDownLatch done = new CountDownLatch(TASKS);
        for (int i = 0; i < TASKS; i++) {
            work.execute(() -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                try {
                    all.countDown();
                    all.await(1, TimeUnit.MINUTES);
                    Thread.sleep(20); // a task too many would run meanwhile
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                running.decrementAndGet();
                done.countDown();
            });
        }
        done.await();
        return most.get();
    }
}
