package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;

/** Counts how many requests a server works on at once. The server's code calls {@link #here}, and waits there until all were counted. */
public final class AtOnce {
    /** How many requests a program sends at a time. */
    public static final int REQUESTS = 12;

    private int arrived;
    private int gone;
    private boolean open;

    /** Runs a program under limits that change, whose requests of class APP follow them. */
    public static void follow(Class<?> program) throws IOException, InterruptedException {
        boolean wide = Runtime.getRuntime().availableProcessors() > 4; // else 4 CPUs are no limit
        List<String> lines = RealLimit.run(program);
        assertEquals(List.of("0.5: 1 at once", "1.5: 2 at once", "4.0: " + (wide ? 4 : REQUESTS) + " at once", "0.5: 1 at once"),
                RealLimit.sizes(lines), lines::toString);
    }

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

    /** Sends the requests, each by one call of send, which does not wait for the answer, and says how many were there at once. */
    public synchronized String of(Runnable send) {
        arrived = 0;
        gone = 0;
        open = false;
        for (int i = 0; i < REQUESTS; i++) {
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
            while (gone < REQUESTS) {
                wait();
            }
            return atOnce + " at once";
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
