package io.github.unthrottle.budget;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/** The CPU budget of a process. All methods may be called by many threads. The package's description has the rules. */
public final class CpuBudget {
    /**
     * Options of {@link #setup}.
     *
     * @param warn is told once for each cause that makes the budget let everything run; null: a {@link System.Logger}
     * @param noPacing leaves only permits and rejection
     */
    public record Options(Consumer<String> warn, boolean noPacing) {
        /** Right for most programs. */
        public static final Options DEFAULT = new Options(null, false);
    }

    /** How long BACKGROUND yields to APP at most. */
    private static final long BACKGROUND_WAITS = 1_000_000_000;
    private static final long BACKGROUND_ASKS = 10_000_000;
    private static final TaskClass[] CLASSES = TaskClass.values();

    private static CpuBudget process;

    final Options options;
    final Host host;
    final Pacer pacer = new Pacer();
    private final ClassQueue[] queues = new ClassQueue[CLASSES.length];
    /** How many APP tasks wait; BACKGROUND looks at it without APP's lock. */
    private final AtomicInteger appWaits = new AtomicInteger();
    private final ThreadLocal<OfThread> ofThread = ThreadLocal.withInitial(this::ofNewThread);
    /** What threads ran last, as long as they live; null: {@link #rememberThreads} was not called. */
    private volatile Map<Thread, OfThread> threads;
    private final Set<String> warned = new HashSet<>();
    private final List<Listener> listeners = new ArrayList<>();
    private volatile Watcher.Seen seen = Watcher.Seen.NOTHING;

    /** Permits of a thread: one for {@link #run} to use again, and that of the task that it runs now. */
    private static final class OfThread {
        Permit spare;
        Permit current;
        /** The class of the last task; null: there was none. Others read it without a lock. */
        TaskClass last;

        void begin(Permit p) {
            current = p;
            last = p.taskClass;
        }
    }

    /** Bounds what is remembered of threads. */
    private static final int MOST_THREADS = 20_000;

    private OfThread ofNewThread() {
        OfThread t = new OfThread();
        Map<Thread, OfThread> all = threads;
        // A virtual thread has no number in the kernel. Its group has this name, by the documentation of Thread.
        ThreadGroup group = Thread.currentThread().getThreadGroup();
        if (all != null && all.size() < MOST_THREADS && group != null && !group.getName().equals("VirtualThreads")) {
            all.put(Thread.currentThread(), t);
        }
        return t;
    }

    /** Remembers from now on what threads run their first task, for {@link #classesOfThreads}. */
    public synchronized void rememberThreads() {
        if (threads == null) {
            threads = Collections.synchronizedMap(new WeakHashMap<>());
        }
    }

    /** The class of each thread's last task; none of threads that had their first one before {@link #rememberThreads}. */
    public Map<Thread, TaskClass> classesOfThreads() {
        Map<Thread, TaskClass> classes = new HashMap<>();
        Map<Thread, OfThread> all = threads;
        if (all != null) {
            synchronized (all) {
                all.forEach((thread, t) -> {
                    if (t.last != null) {
                        classes.put(thread, t.last);
                    }
                });
            }
        }
        return classes;
    }

    /** Starts the budget of the process with options. It fails if it has been started. */
    public static synchronized CpuBudget setup(Options options) {
        if (process != null) {
            throw new IllegalStateException("setup after the budget of this process started; call it before the first ofProcess");
        }
        process = new CpuBudget(options, new ThisHost());
        return process;
    }

    /** The budget of this process. The first call starts it, if {@link #setup} did not. */
    public static synchronized CpuBudget ofProcess() {
        return process == null ? setup(Options.DEFAULT) : process;
    }

    /** Begins to watch the limit. It has been read once when this returns. */
    CpuBudget(Options options, Host host) {
        this.options = options;
        this.host = host;
        for (TaskClass c : CLASSES) {
            ClassQueue q = new ClassQueue(c);
            queues[c.ordinal()] = q;
            q.alarm = host.alarm(() -> {
                Waiter told;
                Waiter late;
                synchronized (q) {
                    long now = host.nanos();
                    q.due = Long.MAX_VALUE;
                    late = expire(q, now);
                    told = grant(q, now);
                }
                Waiter.tellAll(late);
                Waiter.tellAll(told);
            });
        }
        new Watcher(this).start();
    }

    /** Tells of a cause once. */
    void warn(String cause, String text) {
        synchronized (warned) {
            if (!warned.add(cause)) {
                return;
            }
        }
        try {
            if (options.warn() != null) {
                options.warn().accept(text);
            } else {
                System.getLogger("io.github.unthrottle.budget").log(System.Logger.Level.WARNING, text);
            }
        } catch (Throwable e) {
            // a log that fails is no reason to stop the program's work
        }
    }

    /**
     * Runs a task when its class has a permit for it and the quota covers it. A task within a task of APP or BACKGROUND has its
     * permit already. On the way of most tasks nothing is allocated.
     */
    public void run(TaskClass c, Runnable task) throws InterruptedException {
        OfThread t = ofThread.get();
        if (nested(t, c)) {
            task.run();
            return;
        }
        Permit p = t.spare == null ? new Permit(this) : t.spare;
        t.spare = null;
        Permit outer = t.current;
        try {
            acquire(p, c, 0, false);
            t.begin(p);
            task.run();
        } finally {
            p.close();
            t.current = outer;
            t.spare = p;
        }
    }

    /** {@link #run} for a task with a result. */
    public <T> T call(TaskClass c, Callable<T> task) throws Exception {
        OfThread t = ofThread.get();
        if (nested(t, c)) {
            return task.call();
        }
        try (Permit p = acquire(c)) {
            return within(t, p, task);
        }
    }

    /** {@link #call} for a task that is of use only if it starts within a time, as {@link #acquireWithin} says. */
    public <T> T callWithin(TaskClass c, Duration within, Callable<T> task) throws Exception {
        OfThread t = ofThread.get();
        if (nested(t, c)) {
            return task.call();
        }
        try (Permit p = acquireWithin(c, within)) {
            return within(t, p, task);
        }
    }

    private static boolean nested(OfThread t, TaskClass c) {
        return t.current != null && t.current.held && (t.current.taskClass != TaskClass.IO || c == TaskClass.IO);
    }

    private static <T> T within(OfThread t, Permit p, Callable<T> task) throws Exception {
        Permit outer = t.current;
        t.begin(p);
        try {
            return task.call();
        } finally {
            t.current = outer;
        }
    }

    /** {@link Permit#lend} for the task that this thread runs. Without one it only runs what is waited for. */
    public <T> T lend(Callable<T> wait) throws Exception {
        Permit p = ofThread.get().current;
        return p == null ? wait.call() : p.lend(wait);
    }

    /** {@link Permit#checkpoint} for the task that this thread runs. Without one it holds nothing back. */
    public void checkpoint() throws InterruptedException {
        Permit p = ofThread.get().current;
        if (p != null) {
            p.checkpoint();
        }
    }

    /** Waits for a permit of a class. The caller closes it. */
    public Permit acquire(TaskClass c) throws InterruptedException {
        Permit p = new Permit(this);
        acquire(p, c, 0, false);
        return p;
    }

    /**
     * {@link #acquire} for a task that is of use only if it starts within a time. It fails at once if the tasks that wait, at the
     * pace of the last ones, take longer; and after that time at the latest.
     */
    public Permit acquireWithin(TaskClass c, Duration within) throws InterruptedException, LateException {
        Permit p = new Permit(this);
        if (!acquire(p, c, Math.max(1, within.toNanos()), false)) {
            throw new LateException();
        }
        return p;
    }

    /**
     * An executor that runs each task on others' threads, once its class has a permit. A task that waits holds no thread. What these
     * threads' executor throws for a task that need not wait is thrown to its caller; a task that it rejects later is lost, which is
     * told once.
     */
    public Executor executor(TaskClass c, Executor threads) {
        Objects.requireNonNull(c);
        Objects.requireNonNull(threads);
        return task -> execute(c, threads, task);
    }

    private void execute(TaskClass c, Executor threads, Runnable task) {
        Objects.requireNonNull(task);
        acquire(new Queued(c, permit -> threads.execute(() -> runWith(permit, task)), null) {
            @Override
            void lost(Throwable e) {
                if (e instanceof RuntimeException) {
                    warn("rejected", "an executor rejected a task that waited for its permit, and the task is lost: " + e);
                } else { // such as no memory for another thread
                    super.lost(e);
                }
            }
        }, null);
    }

    private void runWith(Permit permit, Runnable task) {
        try (permit) { // also where there is no memory for what is remembered of a thread
            OfThread t = ofThread.get();
            Permit outer = t.current;
            t.begin(permit);
            try {
                task.run();
            } finally {
                t.current = outer;
            }
        }
    }

    /**
     * Gives a task its permit once there is one. It returns at once; the task closes the permit.
     *
     * @param within the task is of use only if it starts within this time; null: at any time
     * @param start gets the permit on this thread or on one that gave its own back; it hands the work on, and returns soon. If it throws,
     *     the permit is given back
     * @param late runs in place of start if the task comes too late; with a null within it is never used
     */
    public void acquire(TaskClass c, Duration within, Consumer<Permit> start, Runnable late) {
        acquire(new Queued(c, start, late), within);
    }

    private void acquire(Queued w, Duration within) {
        long limit = within == null ? 0 : Math.max(1, within.toNanos());
        ClassQueue q = queues[w.taskClass.ordinal()];
        long now = host.nanos();
        synchronized (q) {
            if (q.head == null && q.free() && mayStart(q, now, now)) {
                w.second = q.start(now);
                w.started = now;
            } else if (limit > 0 && q.expected(0) > limit) {
                q.late++;
                w.started = -1;
            } else {
                enqueue(q, w, now, limit, false);
                return;
            }
        }
        try {
            w.tell();
        } catch (Throwable e) {
            Waiter.tellAll(w.giveBack());
            throw e;
        }
    }

    /** A task that waits without a thread. */
    private class Queued extends Waiter {
        private final Permit permit = new Permit(CpuBudget.this); // made before there is one to lose
        private final TaskClass taskClass;
        private final Consumer<Permit> start;
        private final Runnable late;

        Queued(TaskClass c, Consumer<Permit> start, Runnable late) {
            this.taskClass = Objects.requireNonNull(c);
            this.start = Objects.requireNonNull(start);
            this.late = late;
        }

        @Override
        void tell() {
            if (started < 0) {
                if (late != null) {
                    late.run();
                }
                return;
            }
            permit.take(taskClass, started, second);
            start.accept(permit);
        }

        @Override
        final Waiter giveBack() {
            return permit.giveBack();
        }
    }

    /** A thread that waits. */
    static final class Blocked extends Waiter {
        private Thread thread;
        private volatile boolean told;

        @Override
        void tell() {
            Thread t = thread;
            told = true;
            LockSupport.unpark(t);
        }
    }

    private void enqueue(ClassQueue q, Waiter w, long now, long within, boolean first) {
        w.since = now;
        w.deadline = within > 0 ? now + within : 0;
        if (w.deadline > 0) {
            q.ask(w.deadline);
        }
        q.push(w, first);
        if (q.taskClass == TaskClass.APP) {
            appWaits.incrementAndGet();
        }
    }

    /** Waits for a permit; false: the task came too late. A task that goes on after it waited for something is the next. */
    boolean acquire(Permit p, TaskClass c, long within, boolean again) throws InterruptedException {
        ClassQueue q = queues[c.ordinal()];
        long now = host.nanos();
        Blocked w;
        synchronized (q) {
            if ((q.head == null || again) && q.free() && mayStart(q, now, now)) {
                p.take(c, now, q.start(now));
                return true;
            }
            if (within > 0 && q.expected(0) > within) {
                q.late++;
                return false;
            }
            if (p.blocked == null) {
                p.blocked = new Blocked();
            }
            w = p.blocked;
            w.thread = Thread.currentThread();
            w.told = false;
            enqueue(q, w, now, within, again);
        }
        while (!w.told) {
            LockSupport.park(this);
            if (!w.told && Thread.interrupted() && cancel(q, w)) {
                throw new InterruptedException();
            }
        }
        if (w.started < 0) {
            return false;
        }
        p.take(c, w.started, w.second);
        return true;
    }

    /** Takes out a task that waits; false: it has just been told. */
    private boolean cancel(ClassQueue q, Blocked w) {
        Waiter told;
        synchronized (q) {
            if (!w.queued) {
                // The task uses its permit: it does not start later than it may.
                Thread.currentThread().interrupt();
                while (!w.told) {
                    Thread.onSpinWait();
                }
                return false;
            }
            remove(q, w);
            told = grant(q, host.nanos());
        }
        Waiter.tellAll(told);
        return true;
    }

    private void remove(ClassQueue q, Waiter w) {
        q.remove(w);
        if (q.taskClass == TaskClass.APP) {
            appWaits.decrementAndGet();
        }
    }

    /**
     * Whether pacing lets the next task of a class start, which has waited since a time. If not, it arranges that the class is
     * asked again. The queue is locked.
     */
    private boolean mayStart(ClassQueue q, long now, long since) {
        TaskClass c = q.taskClass;
        if (c == TaskClass.IO || !pacer.on) {
            return true;
        }
        if (c == TaskClass.BACKGROUND && appWaits.get() > 0 && now - since < BACKGROUND_WAITS) {
            q.ask(now + BACKGROUND_ASKS);
            return false;
        }
        long wait = pacer.decide(now, c, q.cost.high(), q.running - q.overdue);
        if (wait > 0) {
            q.held++;
            q.ask(now + wait);
        }
        return wait == 0;
    }

    /** Ends those that are too late, wherever they wait. The queue is locked; the caller tells them after. */
    private Waiter expire(ClassQueue q, long now) {
        Waiter late = null;
        for (Waiter w = q.head; w != null; ) {
            Waiter after = w.next;
            if (w.deadline > 0 && now >= w.deadline) {
                remove(q, w);
                q.late++;
                w.started = -1;
                w.next = late;
                late = w;
            } else if (w.deadline > 0) {
                q.ask(w.deadline);
            }
            w = after;
        }
        return late;
    }

    /** Starts those that wait, as many as may. The queue is locked; the caller tells them after. */
    Waiter grant(ClassQueue q, long now) {
        Waiter first = null;
        Waiter last = null;
        while (q.head != null && q.free() && mayStart(q, now, q.head.since)) {
            Waiter w = q.startFirst(now);
            if (q.taskClass == TaskClass.APP) {
                appWaits.decrementAndGet();
            }
            if (last == null) {
                first = w;
            } else {
                last.next = w;
            }
            last = w;
        }
        return first;
    }

    /** Ends a task that has its permit, and starts others. The caller tells them. */
    Waiter finish(Permit p) {
        ClassQueue q = queues[p.taskClass.ordinal()];
        long now = host.nanos();
        synchronized (q) {
            if (!p.held) {
                return null; // a start that threw after it handed the work on: that has ended
            }
            p.held = false;
            q.finish(p.since, p.second, now);
            return grant(q, now);
        }
    }

    void checkpoint(Permit p) throws InterruptedException {
        ClassQueue q = queues[p.taskClass.ordinal()];
        while (true) {
            long now = host.nanos();
            long wait = 0;
            synchronized (q) {
                p.second = q.see(p.second);
                if (pacer.on) {
                    int others = Math.max(0, q.running - q.overdue - 1);
                    wait = pacer.decide(now, p.taskClass, now - Math.max(p.checked, p.since), others);
                    if (wait > 0) {
                        q.held++;
                    }
                }
            }
            if (wait == 0) {
                p.checked = now;
                return;
            }
            host.sleep(wait);
            // The time that it waited is no cost.
            p.checked = Math.max(p.checked, p.since) + host.nanos() - now;
        }
    }

    /** Makes sizes the ones in force. */
    void resize(Sizes sizes) {
        for (ClassQueue q : queues) {
            Waiter told;
            synchronized (q) {
                q.permits = sizes.of(q.taskClass);
                told = grant(q, host.nanos());
            }
            Waiter.tellAll(told);
        }
        List<Listener> all;
        synchronized (listeners) {
            all = List.copyOf(listeners);
        }
        for (Listener listener : all) {
            listener.tell();
        }
    }

    /** What {@link #onChange} runs. */
    private final class Listener {
        private final Runnable run;

        Listener(Runnable run) {
            this.run = run;
        }

        /** Runs it, one call after the other: the first one, by who adds it, could end after a later one with what it saw before. */
        synchronized void tell() {
            try {
                run.run();
            } catch (Throwable e) { // also what is checked, which Kotlin and Scala throw anywhere
                warn("listener " + run.getClass().getName(), "what follows the limit failed: " + e);
            }
        }
    }

    /** Runs something now and each time that the limit changes, until the result is closed. It should return soon. */
    public Following onChange(Runnable run) {
        Listener listener = new Listener(run);
        synchronized (listeners) {
            listeners.add(listener);
        }
        listener.tell();
        return () -> {
            synchronized (listeners) {
                listeners.remove(listener);
            }
        };
    }

    /**
     * Keeps a pool at so many threads as the limit carries, until the result is closed. Its size now is the largest.
     *
     * @param threadsPerPermit 1 for threads that compute; for threads that wait for others, how many of them keep one CPU busy
     */
    public Following follow(Pool pool, TaskClass c, double threadsPerPermit) {
        return follow(pool, c, threadsPerPermit, pool.size());
    }

    /** {@link #follow(Pool, TaskClass, double)} up to another size, which the pool also has without a limit. */
    public Following follow(Pool pool, TaskClass c, double threadsPerPermit, int largest) {
        if (!(threadsPerPermit > 0) || largest < 1) {
            throw new IllegalArgumentException(pool.name() + ": " + threadsPerPermit + " threads a permit, at most " + largest
                    + ": a pool has a thread at least");
        }
        ClassQueue q = queues[c.ordinal()];
        return onChange(() -> {
            int permits;
            synchronized (q) {
                permits = q.permits;
            }
            int threads = permits == 0 ? largest : (int) Math.max(1, Math.min(largest, Math.ceil(permits * threadsPerPermit)));
            if (threads == pool.size()) {
                return;
            }
            try {
                pool.resize(threads);
            } catch (UnsupportedOperationException e) {
                warn("pool " + pool.name(), pool.name() + " has " + pool.size() + " threads, " + threads + " fit the limit: " + e.getMessage());
            }
        });
    }

    /** What follows the limit until it is closed. */
    public interface Following extends AutoCloseable {
        @Override
        void close();
    }

    /** How many CPUs this process may run on, whatever its quota; at most 10,000, and so many where it is not known. */
    public int allowedCpus() {
        return Math.min(10_000, Cpus.allowed(host));
    }

    /**
     * How long one more task of a class would wait, in nanoseconds, at the pace of the last ones.
     *
     * @param ahead tasks before it that are not with the budget yet, such as those in the queues of threads that wait for permits
     */
    public long expectedNanos(TaskClass c, int ahead) {
        ClassQueue q = queues[c.ordinal()];
        synchronized (q) {
            return q.expected(ahead);
        }
    }

    ClassQueue queue(TaskClass c) {
        return queues[c.ordinal()];
    }

    void seen(Watcher.Seen s) {
        seen = s;
    }

    /** What the budget knows now. */
    public Snapshot snapshot() {
        Watcher.Seen s = seen;
        Snapshot.Tasks[] classes = new Snapshot.Tasks[queues.length];
        int waiting = 0;
        for (ClassQueue q : queues) {
            synchronized (q) {
                classes[q.taskClass.ordinal()] = new Snapshot.Tasks(q.permits, q.running, q.waiting, q.overdue, q.started, q.finished,
                        q.held, q.late, q.expected(0));
                waiting += q.waiting;
            }
        }
        Double wanted = s.usedCpus() == null ? null : Double.valueOf(s.usedCpus() + waiting);
        return new Snapshot(s.limitCpus(), s.usedCpus(), wanted, s.periods(), s.stopped(), pacer.known(),
                List.copyOf(Arrays.asList(classes)));
    }
}
