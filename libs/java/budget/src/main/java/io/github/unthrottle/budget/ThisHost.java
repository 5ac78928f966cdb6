package io.github.unthrottle.budget;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** This machine, with one thread for alarms. */
final class ThisHost implements Host {
    private final long begun = System.nanoTime() - 1;
    private final java.lang.management.OperatingSystemMXBean system = ManagementFactory.getOperatingSystemMXBean();
    private final Thread thread = new Thread(this::ring, "unthrottle-budget");
    private volatile SetAlarm[] alarms = {};

    @Override
    public long nanos() {
        return System.nanoTime() - begun;
    }

    @Override
    public String read(String name) throws IOException {
        return new String(Files.readAllBytes(Path.of(name)), StandardCharsets.ISO_8859_1);
    }

    @Override
    public Reading open(String name) throws IOException {
        RandomAccessFile file = new RandomAccessFile(name, "r");
        return new Reading() {
            @Override
            public int read(byte[] into) throws IOException {
                file.seek(0);
                return file.read(into);
            }

            @Override
            public void close() throws IOException {
                file.close();
            }
        };
    }

    @Override
    public long processCpuNanos() {
        return system instanceof com.sun.management.OperatingSystemMXBean s ? s.getProcessCpuTime() : -1;
    }

    @Override
    public void sleep(long nanos) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(nanos);
    }

    @Override
    public synchronized Alarm alarm(Runnable task) {
        SetAlarm[] more = Arrays.copyOf(alarms, alarms.length + 1);
        SetAlarm a = new SetAlarm(task);
        more[alarms.length] = a;
        alarms = more;
        if (thread.getState() == Thread.State.NEW) {
            thread.setDaemon(true);
            thread.start();
        }
        return a;
    }

    private final class SetAlarm implements Alarm {
        final Runnable task;
        private long at = Long.MAX_VALUE;

        SetAlarm(Runnable task) {
            this.task = task;
        }

        @Override
        public void set(long when) {
            boolean earlier;
            synchronized (this) {
                earlier = when < at;
                at = when;
            }
            if (earlier) {
                LockSupport.unpark(thread);
            }
        }

        synchronized long at() {
            return at;
        }

        /** Whether its time has come. It is not set any more then, until someone sets it again. */
        synchronized boolean due() {
            if (at > nanos()) {
                return false;
            }
            at = Long.MAX_VALUE;
            return true;
        }
    }

    private void ring() {
        while (true) {
            for (SetAlarm a : alarms) {
                if (a.due()) {
                    ring(a.task);
                }
            }
            // After all tasks: one that waited may have taken the wake-up by which another alarm was set meanwhile.
            long next = Long.MAX_VALUE;
            for (SetAlarm a : alarms) {
                next = Math.min(next, a.at());
            }
            long wait = next - nanos();
            if (wait > 0) {
                LockSupport.parkNanos(this, wait);
                Thread.interrupted(); // whoever interrupted this thread: it waits on
            }
        }
    }

    private static void ring(Runnable task) {
        try {
            task.run();
        } catch (Throwable e) { // also what is checked, which Kotlin and Scala throw anywhere
            Waiter.uncaught(e);
        }
        Thread.interrupted(); // of a task that a start ran here: the next one is not interrupted, and the thread waits
    }
}
