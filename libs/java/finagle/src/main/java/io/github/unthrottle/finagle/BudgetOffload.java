package io.github.unthrottle.finagle;

import com.twitter.finagle.offload.OffloadThreadPoolFactory;
import com.twitter.finagle.stats.StatsReceiver;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads of Finagle's Offload Filter, with tasks of class APP within the budget of the process. Finagle finds it on the class path,
 * and uses it where {@code -Dcom.twitter.finagle.offload.numWorkers=N} or {@code offload.auto} turns offloading on. A queue that is
 * full rejects: Finagle's own pool runs such a task on the event loop, which it is there to protect.
 *
 * <p>Limit: with a second such factory on the class path, Finagle uses its own pool, and says nothing.
 */
public final class BudgetOffload extends OffloadThreadPoolFactory {
    private final CpuBudget budget;

    /** For Finagle: with the budget of the process. */
    public BudgetOffload() {
        this(CpuBudget.ofProcess());
    }

    BudgetOffload(CpuBudget budget) {
        this.budget = budget;
    }

    @Override
    public ExecutorService newPool(int poolSize, int maxQueueLen, StatsReceiver stats) {
        AtomicInteger number = new AtomicInteger();
        ThreadFactory threads = task -> {
            Thread t = new Thread(task, "finagle/offload-" + number.incrementAndGet());
            t.setDaemon(true);
            return t;
        };
        return new ThreadPoolExecutor(poolSize, poolSize, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(maxQueueLen), threads) {
            @Override
            public void execute(Runnable task) {
                super.execute(() -> {
                    try {
                        budget.run(TaskClass.APP, task);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                        task.run(); // the pool shuts down now; a task that it has begun is not lost
                    }
                });
            }
        };
    }

    @Override
    public String toString() {
        return "unthrottle's CPU budget";
    }
}
