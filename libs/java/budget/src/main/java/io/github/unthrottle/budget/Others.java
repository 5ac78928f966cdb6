package io.github.unthrottle.budget;

/** Learns which part of a quota the rest of the container uses. */
final class Others {
    /**
     * The part of the quota that is this process's however much the rest of the container uses: the kernel shares a quota among all that
     * want it. It is more than {@link Slack} keeps at most, so that a task starts.
     */
    private static final double OWN = 0.25;
    /** How long a look counts as much as all that was seen before it. */
    private static final long HALF = 1_000_000_000L;

    private long used;

    /** Begins with none. */
    void restart() {
        used = 0;
    }

    /**
     * Takes the CPU time per period that the rest used within a span. The longer the span, the more it counts. Counters of CPU time are late
     * by up to a tick, so that a figure may be below 0, and only the mean of many is what the rest uses.
     */
    void learn(long perPeriod, long span) {
        if (span > 0) {
            used += (long) ((double) (perPeriod - used) * span / (span + HALF));
        }
    }

    /**
     * The part of a quota with which the process may plan. When in the period the others use theirs is not known, so that it is not for this
     * process at any time.
     */
    long left(long quota) {
        return left(quota, 1, 1);
    }

    /**
     * The same where what is counted as used has the others' time of this period already: only what they use in the rest of it is kept for
     * them.
     */
    long left(long quota, long rest, long period) {
        return Math.max((long) (OWN * quota), quota - (long) ((double) Math.max(0, used) * rest / period));
    }
}
