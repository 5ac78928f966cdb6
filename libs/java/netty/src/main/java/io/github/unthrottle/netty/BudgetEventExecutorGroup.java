package io.github.unthrottle.netty;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import io.netty.util.concurrent.DefaultThreadFactory;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.MultithreadEventExecutorGroup;
import io.netty.util.concurrent.RejectedExecutionHandlers;
import io.netty.util.concurrent.SingleThreadEventExecutor;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;

/**
 * Threads for handlers with application work, in place of the event loop: {@code pipeline.addLast(group, new WorkHandler())}. Each task
 * runs within the budget, in the order of its channel. A thread that waits for a permit costs no CPU time, so that the number of
 * threads need not follow the limit: it bounds how many channels wait for the budget at once.
 */
public final class BudgetEventExecutorGroup extends MultithreadEventExecutorGroup {
    private final CpuBudget budget;
    private final TaskClass taskClass;

    /** A group with so many threads, whose tasks are of a class. */
    public BudgetEventExecutorGroup(CpuBudget budget, TaskClass taskClass, int threads) {
        this(budget, taskClass, threads, new DefaultThreadFactory("budget-" + taskClass.label(), true));
    }

    /** A group with threads of a factory. */
    public BudgetEventExecutorGroup(CpuBudget budget, TaskClass taskClass, int threads, ThreadFactory factory) {
        super(threads, factory, budget, taskClass);
        this.budget = budget;
        this.taskClass = taskClass;
    }

    @Override
    protected EventExecutor newChild(Executor executor, Object... arguments) {
        return new Child(this, executor, (CpuBudget) arguments[0], (TaskClass) arguments[1]);
    }

    /** How long one more task would wait, in nanoseconds, with those in the queues of the threads. */
    public long expectedNanos() {
        int ahead = 0;
        for (EventExecutor e : this) {
            ahead += ((Child) e).pendingTasks();
        }
        return budget.expectedNanos(taskClass, ahead);
    }

    private static final class Child extends SingleThreadEventExecutor {
        private final CpuBudget budget;
        private final TaskClass taskClass;
        private Runnable task;
        private final Runnable runTask = () -> safeExecute(task);

        Child(BudgetEventExecutorGroup parent, Executor executor, CpuBudget budget, TaskClass taskClass) {
            super(parent, executor, true, Integer.MAX_VALUE, RejectedExecutionHandlers.reject());
            this.budget = budget;
            this.taskClass = taskClass;
        }

        @Override
        protected void run() {
            do {
                task = takeTask();
                if (task != null) {
                    try {
                        budget.run(taskClass, runTask);
                    } catch (InterruptedException e) {
                        safeExecute(task); // whoever interrupted an event executor, its task is not lost
                    }
                    task = null;
                    updateLastExecutionTime();
                }
            } while (!confirmShutdown());
        }
    }
}
