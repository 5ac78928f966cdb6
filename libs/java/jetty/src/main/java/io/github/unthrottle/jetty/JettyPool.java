package io.github.unthrottle.jetty;

import io.github.unthrottle.budget.Pool;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.ThreadPoolBudget;

/** A thread pool of Jetty: qtp1424788681-35 and so on. It follows the limit while Jetty works. */
public final class JettyPool implements Pool {
    private final QueuedThreadPool pool;
    private final int min;

    /** A server's pool. */
    public JettyPool(QueuedThreadPool pool) {
        this.pool = pool;
        min = pool.getMinThreads();
    }

    @Override
    public String name() {
        return "Jetty " + pool.getName();
    }

    /** Threads for requests: maxThreads without those that acceptors and selectors lease. */
    @Override
    public int size() {
        return Math.max(1, pool.getMaxThreads() - leased());
    }

    @Override
    public void resize(int threads) {
        int max = threads + leased();
        pool.setMinThreads(Math.min(min, Math.min(max, pool.getMaxThreads())));
        pool.setMaxThreads(max);
        pool.setMinThreads(Math.min(min, max));
    }

    private int leased() {
        ThreadPoolBudget b = pool.getThreadPoolBudget();
        return b == null ? 0 : b.getLeasedThreads();
    }
}
