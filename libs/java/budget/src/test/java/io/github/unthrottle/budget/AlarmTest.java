package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Alarms of a real host: whatever their tasks do, the others ring. */
@Timeout(60)
class AlarmTest {
    private static final long HOUR = 3_600_000_000_000L;

    private final ThisHost host = new ThisHost();

    /** Rings an alarm now, and waits for it. */
    private void ring(Runnable task) throws InterruptedException {
        CountDownLatch rang = new CountDownLatch(1);
        host.alarm(() -> {
            try {
                task.run();
            } finally {
                rang.countDown();
            }
        }).set(host.nanos());
        rang.await();
    }

    /** A task that waits takes the wake-up of an alarm that is set meanwhile. */
    @Test
    void anAlarmThatIsSetWhileATaskWaitsRings() throws Exception {
        CountDownLatch rang = new CountDownLatch(1);
        Host.Alarm later = host.alarm(rang::countDown);
        later.set(host.nanos() + HOUR);
        AtomicInteger waits = new AtomicInteger();
        AtomicBoolean end = new AtomicBoolean();
        host.alarm(() -> {
            while (!end.get()) {
                LockSupport.parkNanos(this, 1_000_000);
                waits.incrementAndGet();
            }
        }).set(host.nanos());
        while (waits.get() == 0) {
            Thread.onSpinWait();
        }
        later.set(host.nanos());
        for (int after = waits.get() + 2; waits.get() < after; ) {
            Thread.onSpinWait();
        }
        end.set(true);
        assertTrue(rang.await(30, TimeUnit.SECONDS), "the alarm that was set while a task waited did not ring");
    }

    @Test
    void aTaskThatInterruptsItsThreadInterruptsNoOther() throws Exception {
        AtomicReference<Thread> thread = new AtomicReference<>();
        ring(() -> {
            thread.set(Thread.currentThread());
            Thread.currentThread().interrupt();
        });
        AtomicBoolean interrupted = new AtomicBoolean();
        ring(() -> interrupted.set(Thread.currentThread().isInterrupted()));
        assertFalse(interrupted.get());
        thread.get().interrupt(); // it waits on
        while (thread.get().isInterrupted()) {
            Thread.onSpinWait();
        }
        ring(() -> {});
    }

    @Test
    void whateverATaskThrowsTheNextRings() throws Exception {
        AtomicInteger told = new AtomicInteger();
        ring(() -> Thread.currentThread().setUncaughtExceptionHandler((t, e) -> told.incrementAndGet()));
        for (Throwable e : new Throwable[] {new IOException("of a task"), new IllegalStateException("of a task"), new OutOfMemoryError("of a task")}) {
            ring(() -> ThreadsTest.<RuntimeException>sneak(e));
        }
        ring(() -> {});
        assertEquals(3, told.get());
    }
}
