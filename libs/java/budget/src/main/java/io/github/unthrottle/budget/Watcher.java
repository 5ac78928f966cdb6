package io.github.unthrottle.budget;

import java.io.IOException;

/** Follows the limit, finds tasks that do not return, and learns the phase of the period. */
final class Watcher {
    /** How often the limit is read. */
    static final long POLL_EVERY = 250_000_000;
    /** How many times in a row the limit may be unreadable before it counts as none. */
    private static final int FAILURES = 2;
    /** How often a phase that is known is compared with cpu.stat. */
    private static final long CHECK_EVERY = 2_000_000_000;
    private static final long SECOND = 1_000_000_000;
    /** The part of a period from which on a reading that comes late did so because the process was stopped. */
    private static final int OVERSLEPT = 50;

    /** What was seen last, as {@link Snapshot} has it. */
    record Seen(Double limitCpus, Double usedCpus, Long periods, Long stopped) {
        static final Seen NOTHING = new Seen(null, null, null, null);
    }

    private final CpuBudget b;
    private final Host host;
    private final Host.Alarm alarm;
    private Limit limit = Limit.NONE;
    private int hostCpus;
    private int failed;
    private boolean applied;
    private long nextPoll;
    private long nextCheck;
    private long nextSecond;
    private long asked; // when it wanted to come again
    private long sampled; // stopped periods at the last sample of the phase
    // The last readings.
    private long at;
    private long own = -1;
    private long started;
    private long ran;
    private boolean active; // APP or BACKGROUND ran since
    private Limit.Counters counted; // null: not known
    private Host.Reading usage;
    private Pacer.CpuTime group; // null: only this process's CPU time is known
    // The last readings for the rest of the container.
    private long othersAt;
    private long othersOwn = -1;
    private long othersGroup;
    private Seen seen = Seen.NOTHING;

    Watcher(CpuBudget b) {
        this.b = b;
        this.host = b.host;
        alarm = host.alarm(this::look);
    }

    void start() {
        nextSecond = host.nanos() + SECOND;
        look();
    }

    private void look() {
        long next = host.nanos() + SECOND; // whatever fails, it comes again
        try {
            long now = host.nanos();
            if (now >= nextSecond) {
                nextSecond = now + SECOND;
                second();
            }
            if (now >= nextPoll) {
                nextPoll = now + POLL_EVERY;
                poll();
            }
            asked = Math.max(sample(), host.nanos());
            next = asked;
        } catch (RuntimeException | Error e) {
            limit = Limit.NONE;
            applied = false; // also where what follows fails: an OutOfMemoryError seldom comes alone
            b.warn("watcher", "the CPU limit is not followed: " + e + "; the program runs on as without one until it can be read again");
            apply();
        } finally {
            alarm.set(next);
        }
    }

    /** Finds tasks that do not return. */
    private void second() {
        for (TaskClass c : TaskClass.values()) {
            ClassQueue q = b.queue(c);
            int n;
            Waiter told = null;
            synchronized (q) {
                n = q.tick();
                if (n > 0) {
                    told = b.grant(q, host.nanos());
                }
            }
            Waiter.tellAll(told);
            if (n > 0) {
                b.warn("overdue", "a task of class " + c.label() + " has run for " + ClassQueue.OVERDUE_AFTER
                        + " s without checkpoint: its permit is given to others; end the task, or call checkpoint in it");
            }
        }
    }

    /** Reads the limit and what was used. */
    private void poll() {
        Limit l;
        try {
            l = Limit.read(host);
            failed = 0;
        } catch (IOException | RuntimeException e) {
            failed++;
            if (failed < FAILURES && applied) {
                return;
            }
            b.warn("unreadable", "the CPU limit of this process: " + e.getMessage() + "; the program runs on as without a limit");
            l = Limit.NONE;
        }
        int cpus = Cpus.allowed(host);
        if (!applied || !l.equals(limit) || cpus != hostCpus) {
            if (failed == 0 && limit.limited() && !l.limited()) {
                b.warn("gone", "the CPU limit is gone; the program runs on as without one");
            }
            limit = l;
            hostCpus = cpus;
            applied = true;
            apply();
        }
        use();
    }

    /** Makes the limit the one in force. */
    private void apply() {
        Host.Reading before = usage;
        usage = null;
        try {
            follow();
        } finally {
            if (before != null) {
                close(before); // the pacer has another source now
            }
        }
    }

    private void follow() {
        boolean paced = limit.limited() && !b.options.noPacing();
        group = null;
        counted = null;
        othersOwn = -1;
        Pacer.CpuTime source = host::processCpuNanos;
        if (paced) {
            source = source();
            try {
                limit.counters(host);
                if (source.nanos() < 0) {
                    throw new IOException("the CPU time of this process is not known");
                }
            } catch (IOException | RuntimeException e) {
                b.warn("counters", e.getMessage() + "; nothing is held back");
                paced = false;
            }
        }
        Sizes fits = limit.limited() ? Sizes.of(limit.cpus(), hostCpus, paced) : Sizes.UNBOUNDED;
        b.pacer.follow(limit, source, paced && !fits.equals(Sizes.UNBOUNDED));
        show(new Seen(limit.limited() ? limit.cpus() : null, seen.usedCpus, null, null));
        b.resize(fits);
    }

    /**
     * What the quota is spent on: CPU time of the level that has it, with the rest of the container. Where it cannot be read, CPU
     * time of this process, which the JDK counts in ticks of 10 ms.
     */
    private Pacer.CpuTime source() {
        if (limit.usage() != null) {
            try {
                Host.Reading file = host.open(limit.usage());
                usage = file;
                Limit l = limit;
                byte[] text = new byte[64];
                Pacer.CpuTime reader = () -> {
                    synchronized (file) { // the pacer's threads read it too: they share its offset and the bytes
                        try {
                            return l.usage(text, file.read(text));
                        } catch (IOException e) {
                            return -1;
                        }
                    }
                };
                if (reader.nanos() >= 0) {
                    group = reader;
                    return reader;
                }
            } catch (IOException | RuntimeException e) {
                // the process's own is the next best
            }
        }
        return host::processCpuNanos;
    }

    /** Closes a file, but not while the pacer's threads read it: its descriptor could be another file's by then. */
    private static void close(Host.Reading file) {
        synchronized (file) {
            try {
                file.close();
            } catch (IOException e) {
                // it was only read
            }
        }
    }

    private void show(Seen s) {
        seen = s;
        b.seen(s);
    }

    /** Reads CPU time and counters. */
    private void use() {
        long now = host.nanos();
        long cpu = host.processCpuNanos();
        long nowStarted = 0;
        long nowRan = 0;
        int open = 0;
        for (TaskClass c : TaskClass.values()) {
            if (c == TaskClass.IO) {
                continue;
            }
            ClassQueue q = b.queue(c);
            synchronized (q) {
                nowStarted += q.started;
                nowRan += q.wallTime(now);
                open += q.running + q.waiting;
            }
        }
        active = nowStarted != started || open > 0;
        long taskTime = nowRan - ran;
        long span = now - at;
        Double cpus = null;
        if (own >= 0 && cpu >= own && span > 0) {
            cpus = (double) (cpu - own) / span;
            // Where tasks were on the CPU for all their time, more CPU time than theirs is of IO and the collector.
            if (taskTime > span / 50) {
                b.pacer.learnBusy(cpu - own, taskTime);
            }
        }
        others(now, cpu);
        started = nowStarted;
        ran = nowRan;
        at = now;
        own = cpu;
        Long periods = null;
        Long stopped = null;
        Limit.Counters before = counted;
        counted = null;
        if (limit.limited()) {
            try {
                counted = limit.counters(host);
                periods = counted.periods();
                stopped = counted.throttled();
            } catch (IOException | RuntimeException e) {
                // not measured
            }
        }
        if (before != null && counted != null) {
            b.pacer.learnSlack(Limit.Counters.since(before.periods(), counted.periods()),
                    Limit.Counters.since(before.throttled(), counted.throttled()));
        }
        show(new Seen(seen.limitCpus, cpus, periods, stopped));
    }

    /** Measures each second what the rest of the container uses: over less, the ticks of the JDK's figure would count as theirs. */
    private void others(long now, long cpu) {
        if (group == null || cpu < 0 || now - othersAt < SECOND && othersOwn >= 0) {
            return;
        }
        long all = group.nanos();
        if (othersOwn >= 0 && cpu >= othersOwn && all >= othersGroup) {
            b.pacer.learnOthers(all - othersGroup - (cpu - othersOwn), now - othersAt);
        }
        othersAt = now;
        othersOwn = all < 0 ? -1 : cpu;
        othersGroup = all;
    }

    /** Learns the phase of the period while there is work to be held back. It returns when to come again. */
    private long sample() {
        Pacer p = b.pacer;
        long next = Math.min(nextPoll, nextSecond);
        if (!p.on || !active) {
            return next;
        }
        long now = host.nanos();
        boolean known = p.known();
        if (known && now > nextCheck + limit.periodNanos()) {
            nextCheck = now + CHECK_EVERY;
        }
        if (known && now < nextCheck) {
            return next;
        }
        try {
            Limit.Counters c = limit.counters(host);
            boolean resumed = Limit.Counters.since(sampled, c.throttled()) > 0 && now > asked + limit.periodNanos() / OVERSLEPT;
            sampled = c.throttled();
            p.learn(now, host.nanos(), c.periods(), resumed);
        } catch (IOException | RuntimeException e) {
            return next; // the next poll says what is wrong
        }
        return Math.min(p.next(now), next);
    }
}
