package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PoolsTest {
    private final FakeLimit limit = new FakeLimit(2.5);

    @Test
    void anExecutorFollowsTheLimit() {
        ThreadPoolExecutor fixed = (ThreadPoolExecutor) Executors.newFixedThreadPool(40);
        ThreadPoolExecutor grows = new ThreadPoolExecutor(3, 40, 1, TimeUnit.SECONDS, new ArrayBlockingQueue<>(9));
        ScheduledThreadPoolExecutor scheduled = new ScheduledThreadPoolExecutor(40);
        limit.budget.follow(Pools.of("fixed", fixed), TaskClass.APP, 1);
        limit.budget.follow(Pools.of("grows", grows), TaskClass.APP, 4.5);
        CpuBudget.Following following = limit.budget.follow(Pools.of("scheduled", scheduled), TaskClass.BACKGROUND, 1, 50);
        for (int[] want : new int[][] {{25, 2, 3, 9, 1}, {5, 1, 3, 5, 1}, {200, 20, 3, 40, 10}, {0, 40, 3, 40, 50}, {12, 1, 3, 5, 1}}) {
            limit.set(want[0] / 10.0);
            assertEquals(want[1], fixed.getCorePoolSize());
            assertEquals(want[1], fixed.getMaximumPoolSize());
            assertEquals(want[2], grows.getCorePoolSize());
            assertEquals(want[3], grows.getMaximumPoolSize());
            assertEquals(want[4], scheduled.getCorePoolSize());
        }
        following.close();
        limit.set(20);
        assertEquals(1, scheduled.getCorePoolSize());
        assertEquals(List.of("the CPU limit is gone; the program runs on as without one"), limit.warnings());
        fixed.shutdown();
        grows.shutdown();
        scheduled.shutdown();
    }

    @Test
    void aPoolThatWouldRejectIsLeftAlone() {
        ThreadPoolExecutor cached = (ThreadPoolExecutor) Executors.newCachedThreadPool();
        limit.budget.follow(Pools.of("cached", cached), TaskClass.APP, 1);
        limit.set(1);
        assertEquals(Integer.MAX_VALUE, cached.getMaximumPoolSize());
        assertEquals(1, limit.warnings().size());
        assertTrue(limit.warnings().get(0).contains("cached has 2147483647 threads, 2 fit the limit: its queue holds no task"), limit.warnings()::toString);
        cached.shutdown();
    }

    /** On a Java that can, they follow; on another, one message has the setting. */
    @Test
    void forkJoinPoolsAndVirtualThreads() {
        int version = Runtime.version().feature();
        ForkJoinPool own = new ForkJoinPool(9);
        limit.budget.follow(Pools.of("own", own), TaskClass.APP, 1);
        limit.set(5);
        assertEquals(version >= 19 ? 5 : 9, own.getParallelism());
        limit.budget.follow(Pools.of("common", ForkJoinPool.commonPool()), TaskClass.APP, 1, 7);
        assertEquals(version >= 19 ? 5 : ForkJoinPool.getCommonPoolParallelism(), ForkJoinPool.commonPool().getParallelism());
        limit.budget.follow(Pools.virtualThreads(), TaskClass.APP, 1, 8);
        limit.set(3);
        if (version >= 24) {
            assertEquals(3, Pools.virtualThreads().size());
        }
        String said = String.join("\n", limit.warnings());
        assertEquals(version < 19, said.contains("own has 9 threads, 2 fit the limit: Java " + version
                + " takes the size of a ForkJoinPool at its start; make it with a parallelism of 2"), said);
        assertEquals(version < 19, said.contains("restart with -Djava.util.concurrent.ForkJoinPool.common.parallelism=5"), said);
        assertEquals(version < 21, said.contains("has no virtual threads"), said);
        assertEquals(version >= 21 && version < 24, said.contains("restart with -Djdk.virtualThreadScheduler.parallelism=5"), said);
        limit.set(0);
        own.shutdown();
    }

    /** A pool that others resized before it is followed is not taken for one of its first size. */
    @Test
    void aForkJoinPoolThatWasResizedMeanwhileFollows() {
        ForkJoinPool own = new ForkJoinPool(9);
        Pool early = Pools.of("own", own);
        limit.budget.follow(Pools.of("own", own), TaskClass.APP, 1).close();
        assertEquals(own.getParallelism(), early.size());
        limit.budget.follow(early, TaskClass.APP, 4.5, 9);
        assertEquals(9, own.getParallelism());
        own.shutdown();
    }

    @Test
    void theCollectorNeedsARestart() {
        int size = Pools.collector().size();
        limit.budget.follow(Pools.collector(), TaskClass.APP, size, size);
        assertEquals(List.of(), limit.warnings()); // it has as many as fit
        limit.budget.follow(Pools.collector(), TaskClass.APP, 50);
        limit.budget.follow(Pools.collector(), TaskClass.APP, 50, 100);
        assertEquals(List.of("the collector has " + size
                + " threads, 100 fit the limit: the JVM takes their number at its start; restart with -XX:ParallelGCThreads=100"), limit.warnings());
    }

    @Test
    void aPoolHasAThreadAtLeast() {
        Pool pool = Pools.of("own", new ForkJoinPool(1));
        assertThrows(IllegalArgumentException.class, () -> limit.budget.follow(pool, TaskClass.APP, 0));
        assertThrows(IllegalArgumentException.class, () -> limit.budget.follow(pool, TaskClass.APP, 1, 0));
    }
}
