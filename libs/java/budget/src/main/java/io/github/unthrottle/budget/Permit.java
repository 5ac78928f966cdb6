package io.github.unthrottle.budget;

import java.util.concurrent.Callable;

/** The right of one task to run. It is used by one thread at a time, and closed once. */
public final class Permit implements AutoCloseable {
    private final CpuBudget budget;
    TaskClass taskClass;
    boolean held;
    long since;
    int second;
    /** When {@link #checkpoint} was called last; 0: not yet. */
    long checked;
    /** Waits for this permit; null: it never had to. */
    CpuBudget.Blocked blocked;

    Permit(CpuBudget budget) {
        this.budget = budget;
    }

    void take(TaskClass c, long now, int seen) {
        taskClass = c;
        since = now;
        second = seen;
        checked = 0;
        held = true;
    }

    /** Ends the task. A second call has no effect. */
    @Override
    public void close() {
        Waiter.tellAll(giveBack());
    }

    /** Ends the task. The caller tells those that start in its place. */
    Waiter giveBack() {
        return held ? budget.finish(this) : null;
    }

    /**
     * Runs what a task waits for, such as a query of a database, while others may use its permit. After that the task is the next
     * of its class. If the thread is interrupted then, the task has no permit any more.
     */
    public <T> T lend(Callable<T> wait) throws Exception {
        if (!held) {
            return wait.call();
        }
        close();
        T got;
        try {
            got = wait.call();
        } catch (Exception | Error e) {
            try {
                budget.acquire(this, taskClass, 0, true);
            } catch (InterruptedException again) {
                Thread.currentThread().interrupt();
            }
            throw e;
        }
        budget.acquire(this, taskClass, 0, true);
        return got;
    }

    /**
     * Lets a long task hold back. Call it every millisecond or so of work, without locks held: it returns at once while the quota
     * covers the work, and else waits, with the permit.
     */
    public void checkpoint() throws InterruptedException {
        if (held && taskClass != TaskClass.IO) {
            budget.checkpoint(this);
        }
    }
}
