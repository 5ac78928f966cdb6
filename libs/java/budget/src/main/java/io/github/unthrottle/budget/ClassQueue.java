package io.github.unthrottle.budget;

/** A class's permits and who waits for them, first come, first served. Its caller holds its monitor. */
final class ClassQueue {
    /** How many seconds a task may keep its permit for itself. After that it is taken for one that never returns. */
    static final int OVERDUE_AFTER = 16;

    final TaskClass taskClass;
    int permits; // 0: as many as come
    int running;
    int overdue;
    int waiting;
    Waiter head;
    private Waiter tail;
    /** Counts running tasks by the second in which they started or called checkpoint last; overdue has those of longer ago. */
    private final int[] ages = new int[OVERDUE_AFTER];
    private int second;

    /** Asks again when pacing said; due is when, or the largest number. */
    Host.Alarm alarm;
    long due = Long.MAX_VALUE;

    final Mean cost = new Mean();
    /** From one task that waited to the next that starts. */
    private final Mean between = new Mean();
    private long lastGrant; // 0: nothing waited since

    long started;
    long finished;
    long late;
    long held;
    private long ran; // see wallTime

    ClassQueue(TaskClass taskClass) {
        this.taskClass = taskClass;
    }

    /** Whether a permit is. A task that is overdue has lost its own. */
    boolean free() {
        return permits == 0 || running - overdue < permits;
    }

    /** Starts a task and returns its second. */
    int start(long now) {
        running++;
        started++;
        ran -= now;
        ages[Math.floorMod(second, OVERDUE_AFTER)]++;
        return second;
    }

    /** Ends a task that began at a time, and was seen last in a second. */
    void finish(long since, int seen, long now) {
        running--;
        finished++;
        forget(seen);
        ran += now;
        cost.add(now - since);
    }

    /** Wall time of all tasks so far, also of those that still run. In a program of years it wraps around; differences hold. */
    long wallTime(long now) {
        return ran + running * now;
    }

    private void forget(int seen) {
        if (second - seen < OVERDUE_AFTER) {
            ages[Math.floorMod(seen, OVERDUE_AFTER)]--;
        } else {
            overdue--;
        }
    }

    /** Sees a task that runs, and returns its second. */
    int see(int seen) {
        if (seen != second) {
            forget(seen);
            ages[Math.floorMod(second, OVERDUE_AFTER)]++;
        }
        return second;
    }

    /** Begins a second, and returns how many tasks became overdue. */
    int tick() {
        second++;
        int oldest = Math.floorMod(second, OVERDUE_AFTER);
        int n = ages[oldest];
        overdue += n;
        ages[oldest] = 0;
        return n;
    }

    /** Puts a task at the end, or before the others if it goes on after it waited for something else. */
    void push(Waiter w, boolean first) {
        if (head == null) {
            lastGrant = 0; // nothing waited until now
        }
        w.prev = first ? null : tail;
        w.next = first ? head : null;
        if (w.prev == null) {
            head = w;
        } else {
            w.prev.next = w;
        }
        if (w.next == null) {
            tail = w;
        } else {
            w.next.prev = w;
        }
        w.queued = true;
        waiting++;
    }

    void remove(Waiter w) {
        if (w.prev == null) {
            head = w.next;
        } else {
            w.prev.next = w.next;
        }
        if (w.next == null) {
            tail = w.prev;
        } else {
            w.next.prev = w.prev;
        }
        w.prev = null;
        w.next = null;
        w.queued = false;
        waiting--;
    }

    /** Starts the task that waits first, and returns it. */
    Waiter startFirst(long now) {
        Waiter w = head;
        remove(w);
        if (lastGrant > 0) {
            between.add(now - lastGrant);
        }
        lastGrant = head == null ? 0 : now;
        w.second = start(now);
        w.started = now;
        return w;
    }

    /** Looks again after a time. */
    void ask(long at) {
        if (at < due) {
            due = at;
            alarm.set(at);
        }
    }

    /**
     * How long one more task would wait: the tasks before it, here and elsewhere, at the pace of the last ones. Without one before it nothing is
     * expected, so that a class that rejected everything begins again by itself.
     */
    long expected(int ahead) {
        return (waiting + ahead) * between.value();
    }
}
