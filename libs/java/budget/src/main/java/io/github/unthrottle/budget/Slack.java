package io.github.unthrottle.budget;

/**
 * Learns how much of a quota must stay unused so that the kernel does not stop the process: what CPUs keep of their slices, how late CPU
 * time is read, and what a collector or a compiler takes that nobody asks for.
 *
 * <p>It doubles after a stop, and shrinks by a part while work is held back without one. So about one period in 20 of those ends in a
 * stop, which is short: it begins where the quota was to end.
 */
final class Slack {
    /** sched_cfs_bandwidth_slice_us: a CPU may keep so much quota from the others for a while. */
    private static final long SLICE = 5_000_000;
    /** The part by which it shrinks in a period: 23 periods halve it. */
    private static final double SHRINKS = 0.03;
    /** A hundredth of the quota is always kept, a sixth at most: what needs more is not the work that is held back. */
    private static final int LEAST = 100;

    private static final int MOST = 6;

    private long quota;
    private long kept;

    /** Begins with a slice for another quota. */
    void restart(long quotaNanos) {
        quota = quotaNanos;
        kept = Math.min(SLICE, quota / 8);
    }

    /** What is to stay unused. */
    long kept() {
        return kept;
    }

    /**
     * Takes what the kernel counted since the last call.
     *
     * @param periods how many periods there were
     * @param stopped in how many it stopped the process
     * @param held whether work was held back meanwhile; where none was, nothing is learnt
     */
    void learn(long periods, long stopped, boolean held) {
        if (!held) {
            return;
        }
        if (stopped > 0) {
            kept = Math.min(2 * kept, quota / MOST);
            return;
        }
        for (long i = Math.min(periods, 100); i > 0; i--) {
            kept -= (long) (SHRINKS * kept);
        }
        kept = Math.max(kept, quota / LEAST);
    }
}
