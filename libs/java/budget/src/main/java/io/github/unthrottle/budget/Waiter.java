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

    /** Tells a chain of waiters. What one of them throws keeps nothing from the others. */
    static void tellAll(Waiter first) {
        for (Waiter w = first; w != null; ) {
            Waiter after = w.next;
            w.next = null;
            try {
                w.tell();
            } catch (RuntimeException | Error e) {
                uncaught(e);
            }
            w = after;
        }
    }

    /** Gives what nobody caught to this thread's handler. What the handler throws ends nothing. */
    static void uncaught(Throwable e) {
        Thread t = Thread.currentThread();
        try {
            t.getUncaughtExceptionHandler().uncaughtException(t, e);
        } catch (RuntimeException | Error again) {
            // the JVM ignores it too
        }
    }
}
