package io.github.unthrottle.budget;

/** Counts how many requests a server works on at once. The server's code calls {@link #here}, and waits there until all were counted. */
public final class AtOnce {
    private int arrived;
    private int gone;
    private boolean open;

    /** A request, in the server's code. */
    public synchronized void here() {
        arrived++;
        notifyAll();
        try {
            while (!open) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        gone++;
        notifyAll();
    }

    /** Sends so many requests, each by one call of send, which does not wait for the answer, and says how many were there at once. */
    public synchronized String of(int requests, Runnable send) {
        arrived = 0;
        gone = 0;
        open = false;
        for (int i = 0; i < requests; i++) {
            send.run();
        }
        try {
            // Those that come are there when for a while no more came.
            final long quiet = 700;
            int before = 0;
            for (long until = System.nanoTime() + quiet * 1_000_000; arrived == 0 || System.nanoTime() < until;) {
                wait(50);
                if (arrived != before) {
                    before = arrived;
                    until = System.nanoTime() + quiet * 1_000_000;
                }
            }
            int atOnce = arrived;
            open = true;
            notifyAll();
            while (gone < requests) {
                wait();
            }
            return atOnce + " at once";
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
