package io.github.unthrottle.budget;

/**
 * What is known of when periods begin. The counter nr_periods goes up there: each pair of readings with one step between them
 * bounds the beginning, and the bounds of all pairs are intersected. Times are nanoseconds of a clock that does not jump.
 *
 * <p>Sources: kernel/sched/fair.c at 6.18, do_sched_cfs_period_timer (nr_periods counts periods in which the group ran or was
 * throttled), start_cfs_bandwidth (the phase stays over idle periods).
 */
final class Phase {
    /** The width of the bounds that is enough, as a part of the period. */
    static final int EXACT = 64;
    /** How many readings right after a stop are enough. Each may come late, because other threads run first: the earliest counts. */
    private static final int ENOUGH_RESUMES = 4;

    private long period;
    // The beginning of one period lies in (from, from+width]. width 0: nothing is known.
    private long from;
    private long width;
    private long lastFrom;
    private long lastTo;
    private long lastPeriods;
    private boolean sampled;
    private int resumes; // how many of the bounds ended a stop

    /** Forgets what was learnt: the limit was written. */
    void restart(long periodNanos) {
        period = periodNanos;
        from = 0;
        width = 0;
        sampled = false;
        resumes = 0;
    }

    /** Whether the beginning is known well enough to pace by. */
    boolean known() {
        return width > 0 && width <= period / EXACT;
    }

    long width() {
        return width;
    }

    /** When the period that contains a time began. Call it only if the phase is known. */
    long begin(long at) {
        long begin = from + width;
        return begin + Math.floorDiv(at - begin, period) * period;
    }

    /**
     * Learns from a reading of nr_periods between two times. Readings that are a period apart or more, or whose clock went back,
     * say nothing. Bounds that contradict what is known mean that the phase is another: it is learnt again.
     *
     * <p>A process that is stopped to the end of each period can read nothing shortly before a period begins, so that the lower bound
     * stays far off. But it runs again when the period begins: the earliest of some such readings is the beginning.
     *
     * @param resumed the reading was to come earlier, and the kernel had stopped the process until a period began
     */
    void add(long readFrom, long readTo, long periods, boolean resumed) {
        long before = lastFrom;
        boolean step = sampled && period > 0 && Limit.Counters.since(lastPeriods, periods) == 1 && readTo > lastFrom && readFrom >= lastTo
                && readTo - lastFrom < period;
        lastFrom = readFrom;
        lastTo = readTo;
        lastPeriods = periods;
        sampled = true;
        if (!step) {
            return;
        }
        long w = readTo - before;
        if (width == 0) {
            from = before;
            width = w;
            resume(resumed);
            return;
        }
        // The new bounds are moved by whole periods to where they begin after the known ones, or to one period before that.
        long f = before - Math.floorDiv(before - from, period) * period;
        long low = f;
        long high = Math.min(f + w, from + width);
        long l = Math.max(f - period, from);
        long h = Math.min(f - period + w, from + width);
        if (h - l > high - low) {
            low = l;
            high = h;
        }
        if (high <= low) {
            low = before;
            high = readTo;
            resumes = 0;
        }
        from = low;
        width = high - low;
        resume(resumed);
    }

    /** Counts a reading right after a stop, and takes the upper bound for the beginning when there are enough. */
    private void resume(boolean resumed) {
        if (resumed && ++resumes >= ENOUGH_RESUMES && width > period / EXACT) {
            from += width - period / EXACT;
            width = period / EXACT;
        }
    }

    /**
     * When to read the counter again, after a time: at the lower bound, the middle and the upper bound of where a period may
     * begin, so that one step of the counter halves the bounds; and far from there, where a step says that they are wrong.
     */
    long next(long after) {
        if (width == 0) {
            return after + period / 4;
        }
        long next = after + period;
        next = Math.min(next, following(from, after));
        next = Math.min(next, following(from + width / 2, after));
        next = Math.min(next, following(from + width, after));
        return Math.min(next, following(from + period / 2, after));
    }

    /** The first moment after a time that is whole periods from another. */
    private long following(long at, long after) {
        return at + (Math.floorDiv(after - at, period) + 1) * period;
    }
}
