package io.github.unthrottle.budget;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;

/** A machine with one cgroup of v2, in fake time, without threads: events happen one after another. */
final class SimulatedHost implements Host {
    static final long MS = 1_000_000;
    static final long SECOND = 1000 * MS;

    private record Event(long at, long order, Runnable task) {}

    private final PriorityQueue<Event> events = new PriorityQueue<>(Comparator.comparingLong(Event::at).thenComparingLong(Event::order));
    private long order;
    long now = 1;

    long quota; // 0: max
    long period = 100 * MS;
    long phase = 37 * MS;
    String cpus = "0-7";
    String broken; // what reading any file says
    boolean noCounters;
    long periodsBefore; // what nr_periods began with
    boolean noUsage; // cpu.stat has no usage_usec
    boolean jdkBroken; // the JDK throws
    int noMemoryAfter = -1; // so many readings until one throws an OutOfMemoryError; below 0: none does
    Runnable whileReading; // happens while an open file is read next
    boolean closedWhileRead;
    int burning;
    long used;
    private long settled;
    private long inPeriod; // used in this period
    private long throttled;
    /** CPU time of the rest of the container, in nanoseconds a second. */
    double others;
    final List<String> warnings = new ArrayList<>();

    SimulatedHost(long quota) {
        this.quota = quota;
    }

    CpuBudget start() {
        return start(false);
    }

    CpuBudget start(boolean noPacing) {
        return new CpuBudget(new CpuBudget.Options(warnings::add, noPacing), this);
    }

    /** Runs something after a time. */
    void after(long nanos, Runnable task) {
        events.add(new Event(now + nanos, order++, task));
    }

    /** Lets time pass. */
    void pass(long nanos) {
        long until = now + nanos;
        while (!events.isEmpty() && events.peek().at <= until) {
            Event e = events.poll();
            now = Math.max(now, e.at);
            e.task.run();
        }
        now = until;
    }

    private void settle() {
        while (settled < now) {
            long until = Math.min(now, settled + period - Math.floorMod(settled - phase, period));
            long ran = burning * (until - settled);
            used += ran;
            inPeriod += ran + (long) (others * (until - settled) / SECOND);
            settled = until;
            if (Math.floorMod(settled - phase, period) == 0) {
                if (quota > 0 && inPeriod > quota) {
                    throttled++; // the tasks of this host run on all the same
                }
                inPeriod = 0;
            }
        }
    }

    long usedNow() {
        settle();
        return used;
    }

    /** Keeps a class busy with so many tasks at a time, each with so much CPU time. */
    void load(CpuBudget b, TaskClass c, int tasks, long cost, long until) {
        for (int i = 0; i < tasks; i++) {
            next(b, c, cost, until);
        }
    }

    private void next(CpuBudget b, TaskClass c, long cost, long until) {
        if (now < until) {
            submit(b, c, cost, () -> next(b, c, cost, until));
        }
    }

    /** Runs a task of a class, then something. */
    void submit(CpuBudget b, TaskClass c, long cost, Runnable then) {
        b.acquire(c, null, permit -> {
            settle();
            burning++;
            after(cost, () -> {
                settle();
                burning--;
                permit.close();
                then.run();
            });
        }, null);
    }

    @Override
    public long nanos() {
        return now;
    }

    @Override
    public String read(String name) throws IOException {
        if (noMemoryAfter >= 0 && noMemoryAfter-- == 0) {
            throw new OutOfMemoryError("Java heap space");
        }
        if (jdkBroken) {
            throw new IllegalStateException("as the JDK should not");
        }
        if (broken != null) {
            throw new IOException(name + ": " + broken);
        }
        settle();
        switch (name) {
            case "/proc/self/cgroup":
                return "0::/a\n";
            case "/proc/self/mountinfo":
                return "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
            case "/proc/self/status":
                return "Name:\tjava\nCpus_allowed_list:\t" + cpus + "\n";
            case "/sys/fs/cgroup/a/cpu.max":
                return (quota == 0 ? "max" : String.valueOf(quota / 1000)) + " " + period / 1000 + "\n";
            case "/sys/fs/cgroup/a/cpu.stat":
                String usage = noUsage ? "" : "usage_usec " + (used + (long) (others * now / SECOND)) / 1000 + "\n";
                return usage + (noCounters ? "" : "nr_periods " + (int) (periodsBefore + Math.floorDiv(now - phase + period, period)) + "\nnr_throttled " + throttled + "\n");
            default:
                throw new NoSuchFileException(name);
        }
    }

    @Override
    public Reading open(String name) throws IOException {
        read(name);
        return new Reading() {
            private boolean reads;

            @Override
            public int read(byte[] into) throws IOException {
                if (whileReading != null) {
                    Runnable happens = whileReading;
                    whileReading = null;
                    reads = true;
                    happens.run();
                    reads = false;
                }
                byte[] text = SimulatedHost.this.read(name).getBytes(StandardCharsets.US_ASCII);
                int n = Math.min(text.length, into.length);
                System.arraycopy(text, 0, into, 0, n);
                return n;
            }

            @Override
            public void close() {
                closedWhileRead |= reads;
            }
        };
    }

    @Override
    public long processCpuNanos() {
        return usedNow();
    }

    @Override
    public void sleep(long nanos) {
        pass(nanos);
    }

    /** Uses CPU time on this thread. */
    void burn(long nanos) {
        settle();
        burning++;
        pass(nanos);
        settle();
        burning--;
    }

    @Override
    public Alarm alarm(Runnable task) {
        return new Alarm() {
            private long set;

            @Override
            public void set(long at) {
                long mine = ++set;
                after(Math.max(0, at - now), () -> {
                    if (mine == set) {
                        task.run();
                    }
                });
            }
        };
    }
}
