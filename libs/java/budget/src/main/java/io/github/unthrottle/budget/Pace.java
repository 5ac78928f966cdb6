package io.github.unthrottle.budget;

/**
 * Decides whether work may start in this period of a CPU quota, as a function of values.
 *
 * <p>A task may start if what is left of the quota covers it, the tasks that run, and a reserve for the work that must not wait.
 * A task needs its cost, but at most what is left of the period for one thread: the rest is of the next quota. The reserve
 * shrinks with the period, down to the slack, which the kernel may keep on other CPUs. A task that would leave more to the next
 * quota than that has waits for the next period.
 *
 * <p>Example: 70 of 100 ms, 10 % in reserve, no slack, one thread. After 50 ms 45 ms are used. A task of 30 ms needs 30, 25 are
 * left: it waits. With r ms of the period left it needs r, and 0.07 r are reserved: 25 ms cover both at r = 23.3. So it starts in
 * 26.7 ms.
 *
 * <p>Sources: kernel/sched/fair.c at 6.18, sched_cfs_period_timer, __assign_cfs_rq_runtime.
 */
final class Pace {
    private Pace() {}

    /**
     * How long the task waits in nanoseconds, at most one period; 0: it starts. A period that makes no sense, with a clock that
     * jumped, lets work run.
     *
     * @param elapsed time since the period began
     * @param used CPU time used in it
     * @param cost CPU time of one task
     * @param running tasks that run, without the one that asks
     * @param reserve CPU time kept in a whole period for other work
     * @param slack what is kept until its end
     */
    static long decide(long quota, long period, long elapsed, long used, long cost, int running, long reserve, long slack) {
        if (quota <= 0 || period <= 0 || elapsed < 0 || elapsed >= period || used < 0 || cost < 0) {
            return 0;
        }
        long rest = period - elapsed;
        double threads = running + 1.0;
        double left = (double) quota - used - slack;
        double reserveCpus = (double) reserve / period;
        // left = (threads + reserve) * r has the largest rest r that the quota covers whatever the cost.
        long start = rest;
        if (left < threads * Math.min(cost, rest) + reserveCpus * rest) {
            start = Math.min(rest, (long) (Math.max(0, left) / (threads + reserveCpus)));
        }
        // What is left of the task then is of the next quota. Where that is too small, a start with a fresh one may be early enough.
        double fresh = (double) quota - slack;
        if (threads * ((double) cost - start) > fresh && threads * (cost - fresh / (threads + reserveCpus)) <= fresh) {
            return rest;
        }
        return rest - start;
    }
}
