package io.github.unthrottle.budget;

/** Knows where in its period the process is, and what of the quota is used. */
final class Pacer {
    /** The part of the quota that APP leaves for IO and the collector, and what BACKGROUND leaves. */
    private static final double RESERVED = 0.1;
    private static final double BACKGROUND_RESERVED = 0.3;
    /**
     * How many times a period CPU time is read at most. The library for Go reads it 500 times: its clock is exact, and what the JDK tells
     * moves in ticks of 1 to 10 ms.
     */
    private static final int STEPS = 100;

    /** Reads CPU time in nanoseconds; below 0: it is not known. */
    interface CpuTime {
        long nanos();
    }

    /** Whether work is held back. It is read on each start of a task, without the lock. */
    volatile boolean on;

    private CpuTime cpu;
    private long quota;
    private long period;
    private final Phase phase = new Phase();
    private final Slack slack = new Slack();
    /** Whether a task was held back since the slack was learnt last. */
    private boolean held;
    private final Others others = new Others();
    private final Busy busy = new Busy();
    // When the current period began, the CPU time then; time and CPU time of the last reading.
    private long begin;
    private long base;
    private long at;
    private long used;

    /** Follows another limit. */
    synchronized void follow(Limit l, CpuTime source, boolean paced) {
        quota = l.quotaNanos();
        period = l.periodNanos();
        cpu = source;
        others.restart();
        at = 0;
        begin = 0;
        phase.restart(period);
        slack.restart(quota);
        held = false;
        on = paced;
    }

    synchronized boolean known() {
        return on && phase.known();
    }

    synchronized long next(long after) {
        return phase.next(after);
    }

    synchronized void learn(long from, long to, long periods, boolean resumed) {
        phase.add(from, to, periods, resumed);
    }

    /** Learns how much quota to keep from what the kernel counted since the last call; below 0: that is not known. */
    synchronized void learnSlack(long periods, long stopped) {
        if (periods >= 0 && stopped >= 0) {
            slack.learn(periods, stopped, held);
        }
        held = false;
    }

    /** Learns from the CPU time that the process used while its tasks ran for a time. */
    synchronized void learnBusy(long cpuTime, long taskTime) {
        busy.learn(cpuTime, taskTime);
    }

    /** Learns from the CPU time that the rest of the container used within a span. */
    synchronized void learnOthers(long cpuTime, long span) {
        others.learn((long) ((double) cpuTime * period / span), span);
    }

    /** How long a task of a class waits; 0: it starts. What is not known lets it start. */
    synchronized long decide(long now, TaskClass c, long cost, int running) {
        if (c == TaskClass.IO || !on || !phase.known()) {
            return 0;
        }
        long began = phase.begin(now);
        if (now - at > period / STEPS || began != begin || now < at) {
            long n;
            try {
                n = cpu.nanos();
            } catch (RuntimeException | Error e) {
                return 0; // a permit that is being given must not be lost
            }
            if (n < 0) {
                return 0;
            }
            if (began != begin) {
                base = n;
                // CPU time at the beginning of the period lies between the last reading and this one.
                long span = now - at;
                if (at < began && at > 0 && span > 0 && span < 2 * period) {
                    base = used + (long) ((double) (n - used) * (began - at) / span);
                }
                begin = began;
            }
            at = now;
            used = n;
        }
        double share = c == TaskClass.BACKGROUND ? BACKGROUND_RESERVED : RESERVED;
        long left = others.left(quota, period - (now - begin), period);
        long wait = Pace.decide(left, period, now - begin, used - base, busy.cost(cost), running, (long) (share * quota),
                slack.kept());
        held |= wait > 0;
        return wait;
    }
}
