package io.github.unthrottle.budget;

/** A task that waits in a {@link ClassQueue}. Its fields are guarded by the queue until it is told. */
abstract class Waiter {
    Waiter prev;
    Waiter next;
    long since;
    /** The task is of use only if it starts until then; 0: at any time. */
    long deadline;
    boolean queued;
    /** When the task got its permit; -1: it came too late. */
    long started;
    int second;

    /** Says that the task may start, or came too late. It is called without locks. */
    abstract void tell();

    /** After tell failed: ends the task if it started. The caller tells those that start in its place. */
    Waiter giveBack() {
        return null;
    }

    /** After tell failed: says why. */
    void lost(Throwable e) {
        uncaught(e);
    }

    /**
     * Tells a chain of waiters. What one of them throws keeps nothing from the others; who starts in its place comes last, so that however
     * many fail, the stack does not grow.
     */
    static void tellAll(Waiter first) {
        Waiter last = last(first);
        for (Waiter w = first; w != null; ) {
            Waiter after = w.next;
            w.next = null;
            try {
                w.tell();
            } catch (Throwable e) { // also what is checked, which Kotlin and Scala throw anywhere
                Waiter more = w.giveBack();
                w.lost(e);
                if (after == null) {
                    after = more;
                } else {
                    last.next = more;
                }
                last = more == null ? last : last(more);
            }
            w = after;
        }
    }

    private static Waiter last(Waiter w) {
        while (w != null && w.next != null) {
            w = w.next;
        }
        return w;
    }

    /** Gives what nobody caught to this thread's handler. What the handler throws ends nothing. */
    static void uncaught(Throwable e) {
        Thread t = Thread.currentThread();
        try {
            t.getUncaughtExceptionHandler().uncaughtException(t, e);
        } catch (Throwable again) {
            // the JVM ignores it too
        }
    }
}
