package io.github.unthrottle.budget;

import static io.github.unthrottle.budget.SimulatedHost.MS;
import static io.github.unthrottle.budget.SimulatedHost.SECOND;
import static io.github.unthrottle.budget.TaskClass.APP;
import static io.github.unthrottle.budget.TaskClass.BACKGROUND;
import static io.github.unthrottle.budget.TaskClass.IO;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The budget on a simulated host, in fake time. */
class CpuBudgetTest {
    @Test
    void sizes() {
        assertEquals(new Sizes(4, 1, 1), Sizes.of(0.5, 8, true));
        assertEquals(new Sizes(4, 1, 1), Sizes.of(1, 8, true));
        assertEquals(new Sizes(8, 2, 1), Sizes.of(1.5, 8, true));
        assertEquals(new Sizes(8, 2, 1), Sizes.of(1.5, 2, true));
        assertEquals(new Sizes(8, 1, 1), Sizes.of(1.5, 8, false));
        assertEquals(new Sizes(16, 4, 2), Sizes.of(4, 8, true));
        assertEquals(new Sizes(4, 1, 1), Sizes.of(1e-9, 8, true));
        for (double none : new double[] {8, Double.POSITIVE_INFINITY, 0, Double.NaN}) {
            assertEquals(Sizes.UNBOUNDED, Sizes.of(none, 8, true));
        }
    }

    @Test
    void ioNeverWaitsBehindApp() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.load(b, APP, 20, SECOND, SECOND);
        assertEquals(1, b.snapshot().of(APP).running());
        assertEquals(19, b.snapshot().of(APP).waiting());
        long[] done = {0};
        for (int i = 0; i < 100; i++) {
            h.submit(b, IO, 0, () -> done[0]++);
            h.pass(0);
        }
        assertEquals(100, done[0]);
    }

    /** CPU time used in each of n periods. */
    private static List<Long> periods(SimulatedHost h, int n) {
        h.pass(h.period - Math.floorMod(h.now - h.phase, h.period));
        List<Long> all = new ArrayList<>();
        long before = h.usedNow();
        for (int i = 0; i < n; i++) {
            h.pass(h.period);
            long after = h.usedNow();
            all.add(after - before);
            before = after;
        }
        return all;
    }

    @Test
    void pacingKeepsTheQuotaAndUsesIt() {
        for (long quota : new long[] {50 * MS, 70 * MS, 150 * MS}) {
            for (long task : new long[] {MS, 7 * MS, 20 * MS, 60 * MS}) {
                for (boolean noUsage : new boolean[] {false, true}) {
                    SimulatedHost h = new SimulatedHost(quota);
                    h.noUsage = noUsage;
                    CpuBudget b = h.start();
                    h.load(b, APP, 6, task, 60 * SECOND);
                    h.pass(3 * SECOND);
                    assertTrue(b.snapshot().paced());
                    String of = "quota " + quota + ", tasks of " + task + ": ";
                    long sum = 0;
                    int over = 0; // a slack that shrinks until a stop costs one period in 20, by a part of the quota
                    for (long used : periods(h, 200)) {
                        assertTrue(used <= quota + quota / 6, of + used);
                        over += used > quota ? 1 : 0;
                        sum += used;
                    }
                    assertTrue(over <= 16, of + over + " of 200 periods are over");
                    assertTrue(sum >= 200 * quota * 75 / 100, of + "only " + sum + " of " + 200 * quota);
                    assertTrue(b.snapshot().of(APP).held() > 0);
                    assertEquals(List.of(), h.warnings);
                }
            }
        }
    }

    @Test
    void pacingLeavesWhatTheRestOfTheContainerUses() {
        SimulatedHost h = new SimulatedHost(100 * MS);
        h.others = 0.4 * SECOND;
        CpuBudget b = h.start();
        h.load(b, APP, 6, 5 * MS, 60 * SECOND);
        h.pass(10 * SECOND);
        long sum = 0;
        for (long used : periods(h, 20)) {
            assertTrue(used <= 60 * MS, used + " used beside 40 ms of the rest of the container");
            sum += used;
        }
        assertTrue(sum >= 20 * 60 * MS * 3 / 4, "only " + sum + " used: the rest of the container counted twice");
    }

    @Test
    void aCheckpointHoldsALongTaskBack() throws Exception {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        List<Long> all = new ArrayList<>();
        h.after(20 * SECOND, () -> watch(h, all, 0));
        b.call(BACKGROUND, () -> {
            while (all.size() < 51) {
                b.checkpoint();
                h.burn(MS);
            }
            return null;
        });
        long sum = 0;
        for (int i = 1; i < all.size(); i++) {
            assertTrue(all.get(i) <= 70 * MS, all.get(i) + " used in period " + i);
            sum += all.get(i);
        }
        assertTrue(sum >= 50 * 70 * MS / 2, "only " + sum + " used");
        assertTrue(b.snapshot().of(BACKGROUND).held() > 0);
        assertEquals(List.of(), h.warnings); // a task that calls checkpoint is not overdue
    }

    /** Adds the CPU time of each period to a list; the first is since the start. */
    /** The kernel's counters are ints: wherever they turn over, the phase of the period is learnt, and its limit paced. */
    @Test
    void countersTurnOver() {
        for (long before : new long[] {(1L << 31) - 5, -5, 1L << 31}) {
            SimulatedHost h = new SimulatedHost(70 * MS);
            h.periodsBefore = before;
            CpuBudget b = h.start();
            h.load(b, APP, 3, 5 * MS, 3 * SECOND);
            h.pass(2 * SECOND);
            assertTrue(b.snapshot().paced(), () -> "from " + before + ": " + b.snapshot());
            assertEquals((before + 20 & 0xffff_ffffL), b.snapshot().periods(), 3);
            assertEquals(List.of(), h.warnings);
        }
    }

    private static void watch(SimulatedHost h, List<Long> all, long before) {
        h.after(h.period - Math.floorMod(h.now - h.phase, h.period), () -> {
            long used = h.usedNow();
            all.add(used - before);
            watch(h, all, used);
        });
    }

    @Test
    void backgroundYieldsToApp() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.load(b, BACKGROUND, 3, 5 * MS, 60 * SECOND);
        h.load(b, APP, 3, 5 * MS, 60 * SECOND);
        h.pass(10 * SECOND);
        long app = b.snapshot().of(APP).finished();
        long background = b.snapshot().of(BACKGROUND).finished();
        assertTrue(background > 0 && background * 4 <= app, app + " of app, " + background + " of background");
    }

    private static void limit(CpuBudget b, Double cpus, int app) {
        assertEquals(cpus, b.snapshot().limitCpus());
        assertEquals(app, b.snapshot().of(APP).permits());
    }

    @Test
    void theBudgetFollowsTheLimit() {
        SimulatedHost h = new SimulatedHost(150 * MS);
        CpuBudget b = h.start();
        limit(b, 1.5, 2);
        List<Integer> told = new ArrayList<>();
        CpuBudget.Following following = b.onChange(() -> told.add(b.snapshot().of(APP).permits()));
        for (int i = 0; i < 3; i++) {
            h.submit(b, APP, 3 * SECOND, () -> {});
        }
        h.quota = 400 * MS;
        h.pass(2 * SECOND);
        limit(b, 4.0, 4);
        assertEquals(3, b.snapshot().of(APP).running());
        h.cpus = "0-3"; // no more than the limit
        h.pass(2 * SECOND);
        limit(b, 4.0, 0);
        h.quota = 50 * MS;
        h.pass(2 * SECOND);
        limit(b, 0.5, 1);
        h.quota = 0;
        h.pass(2 * SECOND);
        limit(b, null, 0);
        assertEquals(List.of(2, 4, 0, 1, 0), told);
        following.close();
        h.quota = 50 * MS;
        h.pass(2 * SECOND);
        assertEquals(5, told.size());
        assertEquals(1, h.warnings.size(), h.warnings::toString);
        assertTrue(h.warnings.get(0).contains("the CPU limit is gone"));
    }

    @Test
    void aListenerThatFailsIsNamedAndTheOthersAreTold() {
        SimulatedHost h = new SimulatedHost(150 * MS);
        CpuBudget b = h.start();
        int[] told = {0};
        b.onChange(() -> {
            throw new IllegalStateException("of the pool");
        });
        b.onChange(() -> ThreadsTest.<RuntimeException>sneak(new java.io.IOException("of another pool")));
        b.onChange(() -> told[0]++);
        h.quota = 250 * MS;
        h.pass(SECOND);
        assertEquals(2, told[0]);
        limit(b, 2.5, 3);
        assertEquals(2, h.warnings.size());
        assertTrue(h.warnings.get(0).contains("of the pool"));
        assertTrue(h.warnings.get(1).contains("of another pool"));
    }

    /** Fails unless more tasks run at once than any limit allows. */
    private static void unbounded(SimulatedHost h, CpuBudget b) {
        for (int i = 0; i < 500; i++) {
            h.submit(b, BACKGROUND, SECOND, () -> {});
        }
        assertEquals(500, b.snapshot().of(BACKGROUND).running(), "the program does not run as without the library");
        h.pass(2 * SECOND);
    }

    @Test
    void filesThatCannotBeRead() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.broken = "Input/output error";
        h.pass(Watcher.POLL_EVERY + MS);
        h.broken = null;
        h.pass(SECOND);
        assertNotNull(b.snapshot().limitCpus()); // after one reading that failed
        assertEquals(List.of(), h.warnings);
        h.broken = "Input/output error";
        h.pass(10 * SECOND);
        unbounded(h, b);
        assertEquals(1, h.warnings.size());
        assertTrue(h.warnings.get(0).contains("the program runs on as without a limit"));
        h.broken = null;
        h.pass(2 * SECOND);
        limit(b, 0.7, 1); // once they can be read again

        SimulatedHost never = new SimulatedHost(70 * MS);
        never.broken = "Permission denied";
        b = never.start();
        unbounded(never, b);
        never.pass(10 * SECOND);
        assertEquals(1, never.warnings.size());
    }

    @Test
    void whatTheJdkThrowsStopsNothing() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.jdkBroken = true;
        h.pass(10 * SECOND);
        unbounded(h, b);
        assertEquals(1, h.warnings.size());
        h.jdkBroken = false;
        h.pass(2 * SECOND);
        limit(b, 0.7, 1);
    }

    /** Whichever reading an Error ends, the limit is followed again afterwards. */
    @Test
    void anErrorEndsNothing() {
        for (int n = 0; n < 200; n++) {
            SimulatedHost h = new SimulatedHost(70 * MS);
            CpuBudget b = h.start();
            h.load(b, APP, 6, 5 * MS, 60 * SECOND);
            h.noMemoryAfter = n;
            h.pass(5 * SECOND);
            assertTrue(h.noMemoryAfter < 0, "reading " + n + " never came");
            h.quota = 150 * MS;
            h.pass(3 * SECOND);
            limit(b, 1.5, 2);
        }
    }

    /** A listener that fails by an Error keeps the limit from nothing else, nor does a log, nor an executor without memory. */
    @Test
    void errorsOfOthersEndNothing() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = new CpuBudget(new CpuBudget.Options(text -> {
            throw new StackOverflowError();
        }, false), h);
        int[] told = {0};
        b.onChange(() -> {
            throw new OutOfMemoryError("unable to create native thread");
        });
        b.onChange(() -> told[0]++);
        h.quota = 150 * MS;
        h.pass(SECOND);
        assertEquals(2, told[0]);
        limit(b, 1.5, 2);
        for (int i = 0; i < 5; i++) {
            assertThrows(OutOfMemoryError.class, () -> b.executor(APP, task -> {
                throw new OutOfMemoryError("unable to create native thread");
            }).execute(() -> {}));
        }
        assertEquals(0, b.snapshot().of(APP).running());
    }

    /** Without the counters of periods the phase cannot be learnt: sizes hold, and nothing is held back. */
    @Test
    void withoutCountersThereIsNoPacing() {
        SimulatedHost h = new SimulatedHost(150 * MS);
        h.noCounters = true;
        CpuBudget b = h.start();
        h.load(b, APP, 6, 5 * MS, 60 * SECOND);
        h.pass(10 * SECOND);
        Snapshot s = b.snapshot();
        assertTrue(!s.paced() && s.of(APP).permits() == 1 && s.of(APP).held() == 0 && s.of(APP).finished() > 1900, s::toString);
        assertNull(s.periods());
        assertEquals(1, h.warnings.size());
        assertTrue(h.warnings.get(0).contains("cpu.stat: no nr_periods; nothing is held back"));
    }

    @Test
    void aTaskThatNeverReturnsLosesItsPermit() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start(true);
        List<Permit> never = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            b.acquire(APP, null, never::add, null);
        }
        boolean[] ran = {false};
        b.acquire(APP, null, p -> {
            ran[0] = true;
            p.close();
        }, null);
        h.pass(5 * SECOND);
        assertTrue(!ran[0] && never.size() == 1, "the permit was given away after 5 s");
        h.pass(60 * SECOND);
        assertTrue(ran[0]);
        Snapshot.Tasks s = b.snapshot().of(APP);
        assertEquals(3, s.overdue());
        assertEquals(3, s.running());
        assertEquals(1, h.warnings.size());
        assertTrue(h.warnings.get(0).contains("class app"));
        never.forEach(Permit::close);
        never.forEach(Permit::close); // of no effect
        s = b.snapshot().of(APP);
        assertEquals(0, s.overdue());
        assertEquals(0, s.running());
    }

    /** A burst of tasks of 10 ms that are of use only within 100 ms. It returns how many came too late. */
    private static int burst(SimulatedHost h, CpuBudget b, long every, int n) {
        int[] late = {0};
        for (int i = 0; i < n; i++) {
            long begun = h.now;
            b.acquire(APP, Duration.ofMillis(100), p -> {
                assertTrue(h.now - begun <= 100 * MS);
                h.after(10 * MS, p::close);
            }, () -> {
                assertTrue(h.now - begun <= 100 * MS);
                late[0]++;
            });
            h.pass(every);
        }
        h.pass(SECOND);
        assertEquals(0, b.snapshot().of(APP).waiting());
        return late[0];
    }

    @Test
    void whatComesTooLateIsRejectedAndThenNoMore() {
        SimulatedHost h = new SimulatedHost(100 * MS);
        CpuBudget b = h.start(true);
        int late = burst(h, b, 10 * MS / 3, 900);
        assertTrue(late > 500 && late < 700, "overloaded threefold: " + late + " of 900 rejected");
        assertEquals(late, b.snapshot().of(APP).late());
        assertEquals(0, burst(h, b, 12 * MS, 200), "rejected after the burst");
    }

    /** Behind a task without an objective, one that waits so long is told then. */
    @Test
    void theObjectiveEndsTheWaitWhoeverWaitsBefore() {
        SimulatedHost h = new SimulatedHost(100 * MS);
        CpuBudget b = h.start(true);
        h.submit(b, APP, 5 * SECOND, () -> {});
        h.submit(b, APP, SECOND, () -> {});
        long[] late = {0};
        b.acquire(APP, Duration.ofMillis(100), p -> late[0] = -1, () -> late[0] = h.now);
        h.pass(SECOND);
        assertEquals(100 * MS + 1, late[0]);
    }

    @Test
    void clockAndCpuTimeJump() {
        SimulatedHost h = new SimulatedHost(70 * MS);
        CpuBudget b = h.start();
        h.load(b, APP, 3, 5 * MS, Long.MAX_VALUE / 4);
        h.pass(5 * SECOND);
        h.now += 3600 * SECOND; // as after a suspended machine
        h.pass(5 * SECOND);
        h.used = 0; // as after a restored checkpoint of the process
        long before = b.snapshot().of(APP).finished();
        h.pass(5 * SECOND);
        assertTrue(b.snapshot().of(APP).finished() > before + 100);
    }

    /** 10,000 pools of a program share the budget: no more than its permits run, and each task has its turn. */
    @Test
    void tenThousandPools() {
        SimulatedHost h = new SimulatedHost(150 * MS);
        CpuBudget b = h.start(true);
        int[] done = {0};
        for (int pool = 0; pool < 10_000; pool++) {
            TaskClass c = TaskClass.values()[pool % 3];
            for (int i = 0; i < 3; i++) {
                h.submit(b, c, 1000, () -> done[0]++);
            }
        }
        assertTrue(h.burning <= 8 + 1 + 1);
        h.pass(10 * SECOND);
        assertEquals(30_000, done[0]);
    }
}
