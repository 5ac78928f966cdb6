package io.github.unthrottle.budget;

import static io.github.unthrottle.budget.SimulatedHost.MS;
import static io.github.unthrottle.budget.TaskClass.APP;
import static io.github.unthrottle.budget.TaskClass.BACKGROUND;
import static io.github.unthrottle.budget.TaskClass.IO;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The budget with real threads. Their host's time stands, so that only permits count. */
@Timeout(60)
class ThreadsTest {
    private static final CpuBudget ONE = new SimulatedHost(70 * MS).start(true);

    private static void until(BooleanSupplier what) {
        while (!what.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }

    private static int waiting(CpuBudget b) {
        return b.snapshot().of(APP).waiting();
    }

    @Test
    void firstComeFirstServedAndAnInterruptedTaskLeaves() throws Exception {
        CpuBudget b = new SimulatedHost(70 * MS).start(true);
        Permit first = b.acquire(APP);
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            int n = i;
            Thread t = new Thread(() -> {
                try {
                    b.run(APP, () -> order.add(n));
                } catch (InterruptedException e) {
                    order.add(-n);
                }
            });
            t.start();
            threads.add(t);
            until(() -> waiting(b) == n + 1);
        }
        threads.get(2).interrupt();
        threads.get(2).join();
        first.close();
        first.close(); // of no effect
        for (Thread t : threads) {
            t.join();
        }
        assertEquals(List.of(-2, 0, 1, 3, 4), order);
        Snapshot.Tasks s = b.snapshot().of(APP);
        assertEquals(0, s.running());
        assertEquals(5, s.finished());
    }

    @Test
    void aTaskThatThrowsReleases() throws Exception {
        assertThrows(IllegalStateException.class, () -> ONE.run(APP, () -> {
            throw new IllegalStateException("of the task");
        }));
        assertThrows(java.io.IOException.class, () -> ONE.call(APP, () -> {
            throw new java.io.IOException("of the task");
        }));
        assertEquals(7, ONE.call(APP, () -> 7));
    }

    @Test
    void aTaskWithinATaskHasItsPermit() throws Exception {
        List<String> ran = new ArrayList<>();
        ONE.run(APP, () -> {
            try {
                ONE.run(APP, () -> ran.add("app in app"));
                ONE.run(BACKGROUND, () -> ran.add("background in app"));
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        ONE.run(IO, () -> {
            try {
                ONE.run(APP, () -> ran.add("app in io: " + ONE.snapshot().of(APP).running()));
                ONE.run(IO, () -> ran.add("io in io: " + ONE.snapshot().of(IO).running()));
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        assertEquals(List.of("app in app", "background in app", "app in io: 1", "io in io: 1"), ran);
    }

    @Test
    void whoWaitsForADatabaseLendsItsPermitAndIsNextAfterIt() throws Exception {
        CpuBudget b = new SimulatedHost(70 * MS).start(true);
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch query = new CountDownLatch(1);
        CountDownLatch lent = new CountDownLatch(1);
        CountDownLatch other = new CountDownLatch(1);
        ExecutorService threads = Executors.newCachedThreadPool();
        try {
            Future<?> first = threads.submit(() -> b.call(APP, () -> {
                b.checkpoint();
                b.lend(() -> {
                    lent.countDown();
                    query.await();
                    return null;
                });
                return order.add("after the query");
            }));
            lent.await();
            Future<?> second = threads.submit(() -> b.call(APP, () -> {
                other.await();
                return order.add("another");
            }));
            until(() -> b.snapshot().of(APP).running() == 1);
            Future<?> third = threads.submit(() -> b.call(APP, () -> order.add("another")));
            until(() -> waiting(b) == 1);
            query.countDown();
            until(() -> waiting(b) == 2);
            other.countDown();
            first.get();
            second.get();
            third.get();
        } finally {
            threads.shutdown();
        }
        assertEquals(List.of("another", "after the query", "another"), order);
        assertThrows(java.io.IOException.class, () -> b.call(APP, () -> b.lend(() -> {
            throw new java.io.IOException("of the query");
        })));
        assertEquals("none", b.lend(() -> "none")); // without a task it only runs what is waited for
        assertEquals(0, b.snapshot().of(APP).running());
    }

    @Test
    void theExecutorsTasksRunOnItsThreadsWithPermits() throws Exception {
        CpuBudget b = new SimulatedHost(250 * MS).start(true); // 2 permits
        ExecutorService threads = Executors.newFixedThreadPool(8);
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(2000);
        for (int i = 0; i < 2000; i++) {
            b.executor(APP, threads).execute(() -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                running.decrementAndGet();
                done.countDown();
            });
        }
        done.await();
        assertTrue(most.get() <= 2, most::toString);
        threads.shutdown();
        assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS));
        // It is shut down: the caller is told, and the permit comes back.
        assertThrows(RejectedExecutionException.class, () -> b.executor(APP, threads).execute(() -> {}));
        assertEquals(0, b.snapshot().of(APP).running());
    }

    /** A task that waited and is rejected when its turn comes cannot tell its caller: the permit comes back, and others go on. */
    @Test
    void aTaskThatIsRejectedLaterGivesItsPermitBack() throws Exception {
        CpuBudget b = new SimulatedHost(70 * MS).start(true); // 1 permit
        Permit held = b.acquire(APP);
        b.executor(APP, task -> {
            throw new RejectedExecutionException("full");
        }).execute(() -> {});
        held.close();
        assertEquals(1, b.callWithin(APP, Duration.ofSeconds(60), () -> 1));
        assertEquals(0, b.snapshot().of(APP).running());
    }

    /** Nobody closes the permit of a start that fails: it comes back, whether the task waited or not. */
    @Test
    void aStartThatThrowsGivesItsPermitBack() throws Exception {
        CpuBudget b = new SimulatedHost(70 * MS).start(true); // 1 permit
        for (Throwable failed : List.of(new IllegalStateException("closed"), new OutOfMemoryError("no thread"))) {
            Consumer<Permit> start = p -> {
                if (failed instanceof Error e) {
                    throw e;
                }
                throw (RuntimeException) failed;
            };
            assertThrows(failed.getClass(), () -> b.acquire(APP, null, start, null));
            Permit held = b.acquire(APP);
            b.acquire(APP, null, start, null);
            held.close();
            assertEquals(1, b.callWithin(APP, Duration.ofSeconds(60), () -> 1));
        }
        assertEquals(0, b.snapshot().of(APP).running());
    }

    /** A pool that is followed while the limit changes ends with the size of the new limit: its first size does not come after it. */
    @Test
    void aListenersFirstRunDoesNotEndAfterALaterOne() throws Exception {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start(true);
        CountDownLatch read = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        List<Integer> sizes = Collections.synchronizedList(new ArrayList<>());
        Thread first = new Thread(() -> b.onChange(() -> {
            int permits = b.snapshot().of(APP).permits();
            if (read.getCount() > 0) {
                read.countDown();
                try {
                    go.await();
                } catch (InterruptedException e) {
                    return;
                }
            }
            sizes.add(permits);
        }));
        first.start();
        read.await();
        Thread watcher = new Thread(() -> b.resize(new Sizes(8, 3, 1)));
        watcher.start();
        until(() -> watcher.getState() == Thread.State.BLOCKED || watcher.getState() == Thread.State.TERMINATED);
        go.countDown();
        first.join();
        watcher.join();
        assertEquals(List.of(1, 3), sizes);
    }

    /** Throws what is checked where nothing says so, as Kotlin and Scala do. */
    @SuppressWarnings("unchecked")
    static <E extends Throwable> void sneak(Throwable e) throws E {
        throw (E) e;
    }

    /** A start that fails after a wait gives its permit to the next, whatever it throws, and so does an executor's. */
    @Test
    void whateverAStartThrowsTheNextStarts() throws Exception {
        for (Throwable thrown : List.of(new IllegalStateException("of the start"), new OutOfMemoryError("of the start"),
                new java.io.IOException("of the start"))) {
            CpuBudget b = new SimulatedHost(70 * MS).start(true); // 1 permit
            Consumer<Permit> fails = p -> ThreadsTest.<RuntimeException>sneak(thrown);
            Executor failing = task -> ThreadsTest.<RuntimeException>sneak(thrown);
            assertSame(thrown, assertThrows(Throwable.class, () -> b.acquire(APP, null, fails, null)));
            assertSame(thrown, assertThrows(Throwable.class, () -> b.executor(APP, failing).execute(() -> {})));
            assertEquals(0, b.snapshot().of(APP).running());
            Permit held = b.acquire(APP);
            b.acquire(APP, null, fails, null);
            b.executor(APP, failing).execute(() -> {});
            b.acquire(APP, Duration.ofDays(1), fails, null);
            assertEquals(3, waiting(b));
            Thread.UncaughtExceptionHandler before = Thread.currentThread().getUncaughtExceptionHandler();
            List<Throwable> told = new ArrayList<>();
            Thread.currentThread().setUncaughtExceptionHandler((t, e) -> told.add(e));
            try {
                held.close();
            } finally {
                Thread.currentThread().setUncaughtExceptionHandler(before);
            }
            assertEquals(thrown instanceof RuntimeException ? 2 : 3, told.size(), told::toString); // an executor's is a rejection, and a warning
            assertEquals(0, waiting(b));
            assertEquals(0, b.snapshot().of(APP).running());
            assertEquals(1, b.callWithin(APP, Duration.ofSeconds(60), () -> 1));
        }
    }

    /** However many wait for threads that take no more work, all permits come back. */
    @Test
    void manyRejections() throws Exception {
        CpuBudget b = new SimulatedHost(250 * MS).start(true); // 2 permits
        Permit one = b.acquire(APP);
        Permit two = b.acquire(APP);
        Executor full = b.executor(APP, task -> {
            throw new RejectedExecutionException("full");
        });
        for (int i = 0; i < 100_000; i++) {
            full.execute(() -> {});
        }
        one.close();
        two.close();
        assertEquals(0, waiting(b));
        assertEquals(0, b.snapshot().of(APP).running());
    }

    /** A limit that changes while a task asks for CPU time closes the file of the last one after that. */
    @Test
    void theFileOfCpuTimeIsNotClosedWhileItIsRead() throws Exception {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.load(b, APP, 2, 5 * MS, 1900 * MS);
        h.pass(2100 * MS);
        assertTrue(b.snapshot().paced());
        Thread watching = new Thread(() -> {
            h.quota = 150 * MS;
            h.pass(Watcher.POLL_EVERY + MS);
        });
        h.whileReading = () -> {
            watching.start();
            until(() -> watching.getState() == Thread.State.BLOCKED || watching.getState() == Thread.State.TERMINATED);
        };
        b.acquire(APP, null, Permit::close, null);
        watching.join();
        assertEquals(null, h.whileReading, "nothing was read");
        assertEquals(1.5, b.snapshot().limitCpus());
        assertFalse(h.closedWhileRead);
    }

    @Test
    void aRejectionIsCheapAndSaysWhatToDo() throws Exception {
        CpuBudget b = new SimulatedHost(70 * MS).start(true);
        LateException e = new LateException();
        assertEquals(0, e.getStackTrace().length);
        assertTrue(e.getMessage().contains("try again later"));
        assertEquals(1, b.callWithin(APP, Duration.ofNanos(1), () -> 1));
        b.acquireWithin(APP, Duration.ZERO).close();
    }

    /** On a real host: whatever its limit, tasks run, and the watching thread ends nothing. */
    @Test
    void theBudgetOfTheProcess() throws Exception {
        CpuBudget b = CpuBudget.ofProcess();
        assertSame(b, CpuBudget.ofProcess());
        assertThrows(IllegalStateException.class, () -> CpuBudget.setup(CpuBudget.Options.DEFAULT));
        until(() -> b.snapshot().usedCpus() != null);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        AtomicInteger n = new AtomicInteger();
        for (int i = 0; i < 1000; i++) {
            TaskClass c = TaskClass.values()[i % 3];
            threads.submit(() -> b.call(c, n::incrementAndGet));
        }
        threads.shutdown();
        assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS));
        assertEquals(1000, n.get());
        assertFalse(Thread.getAllStackTraces().keySet().stream().noneMatch(t -> t.getName().equals("unthrottle-budget") && t.isDaemon()));
    }

    /** On the way of a task, held back or not, nothing is allocated; the first task of a thread makes its permit. */
    @Test
    void nothingIsAllocatedForATask() throws Exception {
        CpuBudget b = new SimulatedHost(790 * MS).start();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long id = Thread.currentThread().getId();
        int[] n = {0};
        Runnable task = () -> n[0]++;
        for (TaskClass c : TaskClass.values()) {
            b.run(c, task);
            long before = threads.getThreadAllocatedBytes(id);
            for (int i = 0; i < 10_000; i++) {
                b.run(c, task);
            }
            long bytes = threads.getThreadAllocatedBytes(id) - before;
            assertTrue(bytes < 10_000, c + ": " + bytes + " bytes for 10,000 tasks");
        }
    }
}
