package io.github.unthrottle.budget;

import java.io.Closeable;
import java.io.IOException;

/** What the budget touches of the machine. */
interface Host {
    /** Nanoseconds since the start, above 0, by a clock that does not jump. */
    long nanos();

    /** The text of a file. */
    String read(String name) throws IOException;

    /** A file that is read again and again without garbage. */
    Reading open(String name) throws IOException;

    /** CPU time of this process in nanoseconds; -1: not known. */
    long processCpuNanos();

    /** Waits. */
    void sleep(long nanos) throws InterruptedException;

    /** Something that runs later. All alarms of a host run one after another. */
    Alarm alarm(Runnable task);

    interface Reading extends Closeable {
        /** Reads the beginning of the file and returns the number of bytes. */
        int read(byte[] into) throws IOException;
    }

    interface Alarm {
        /** Runs the task at a time of {@link Host#nanos}, in place of an earlier setting. */
        void set(long at);
    }
}
