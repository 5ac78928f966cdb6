package io.github.unthrottle.budget;

import static io.github.unthrottle.budget.SimulatedHost.MS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;

class PaceTest {
    private static void waits(long want, long elapsed, long used, long cost, int running, long reserve, long slack) {
        assertEquals(want, Pace.decide(70 * MS, 100 * MS, elapsed, used, cost, running, reserve, slack));
    }

    @Test
    void decide() {
        long cost = 30 * MS;
        long reserve = 7 * MS;
        waits(0, 0, 0, cost, 0, reserve, 0); // a fresh quota
        waits(26635515, 50 * MS, 45 * MS, cost, 0, reserve, 0); // the example of Pace
        waits(0, 77 * MS, 45 * MS, cost, 0, reserve, 0); // near the end the next quota pays
        waits(40 * MS, 60 * MS, 70 * MS, cost, 0, reserve, 0); // nothing left
        waits(40 * MS, 60 * MS, 90 * MS, cost, 0, reserve, 0); // overdrawn
        waits(0, 0, 0, cost, 1, reserve, 0); // a second task beside it
        waits(77198698, 0, 0, cost, 2, reserve, 0); // a third does not fit
        waits(51 * MS, 20 * MS, 35 * MS, cost, 0, 0, 6 * MS); // slack is kept
        waits(0, 20 * MS, 69 * MS, 0, 0, 0, 0); // a task that is free
        waits(0, -1, 70 * MS, cost, 0, reserve, 0); // the clock went back
        waits(0, 100 * MS, 70 * MS, cost, 0, reserve, 0); // the clock is a period ahead
        waits(0, 0, -1, cost, 0, reserve, 0); // CPU time went back
        waits(8 * MS, 92 * MS, 0, 80 * MS, 0, 0, 0); // the next quota would be overdrawn
        waits(0, 92 * MS, 0, 200 * MS, 0, 0, 0); // any start is too early for it
        waits(30 * MS, 0, 0, 1L << 62, 0, 0, 0); // a task of longer than a year
        assertEquals(0, Pace.decide(0, 100 * MS, 0, 0, cost, 0, reserve, 0)); // no quota
    }

    /** What waits may start when decide said, if nothing else ran meanwhile, and never waits longer than a period. */
    @Test
    void aWaitIsNeverInVain() {
        Random r = new Random(1);
        for (int i = 0; i < 100_000; i++) {
            long quota = 1 + r.nextInt((int) (200 * MS));
            long period = MS + r.nextInt((int) (1000 * MS));
            long elapsed = (long) (r.nextDouble() * period);
            long used = (long) (r.nextDouble() * 2 * quota);
            long cost = (long) (r.nextDouble() * 100 * MS);
            int running = r.nextInt(9);
            long wait = Pace.decide(quota, period, elapsed, used, cost, running, quota / 10, quota / 20);
            assertTrue(wait >= 0 && wait <= period);
            if (wait > 0 && elapsed + wait + 1 < period) {
                long again = Pace.decide(quota, period, elapsed + wait + 1, used, cost, running, quota / 10, quota / 20);
                assertTrue(again <= 10, "it waits again");
            }
        }
    }

    /** Reads when the phase says, each reading late by up to 3 ms and 50 us long. */
    private static long learn(Phase p, long phase, long period, long t, int readings, Random r) {
        for (int i = 0; i < readings; i++) {
            t = p.next(t) + r.nextInt((int) (3 * MS));
            p.add(t, t + 50_000, Math.floorDiv(t + 20_000 - phase, period) + 1000, false);
        }
        return t;
    }

    @Test
    void phaseIsLearntInASecond() {
        Random r = new Random(3);
        for (int i = 0; i < 300; i++) {
            long period = 100 * MS;
            long phase = r.nextInt((int) period);
            Phase p = new Phase();
            p.restart(period);
            long at = learn(p, phase, period, r.nextInt(Integer.MAX_VALUE), 60, r);
            assertTrue(p.known());
            at += 600_000 * MS;
            long begin = p.begin(at);
            assertTrue(begin <= at && at - begin < period);
            long off = Math.floorMod(begin - phase + period / 2, period) - period / 2;
            assertTrue(off >= 0 && off <= period / Phase.EXACT, "off by " + off);
            // A quota that is written begins periods anew; the phase follows.
            phase += 37 * MS;
            learn(p, phase, period, at, 120, r);
            off = Math.floorMod(p.begin(at + 3_600_000 * MS) - phase + period / 2, period) - period / 2;
            assertTrue(p.known() && off >= 0 && off <= period / Phase.EXACT, "off by " + off);
        }
    }

    @Test
    void whatSaysNothingTeachesNothing() {
        for (long[] second : new long[][] {
            {60 * MS, 5}, // idle
            {60 * MS, 7}, // two steps
            {110 * MS, 6}, // a period apart
            {5 * MS, 6}, // the clock went back
            {20 * MS, 4}, // the counter went back
            {3_600_000 * MS, 6}, // the clock went forward
        }) {
            Phase p = new Phase();
            p.restart(100 * MS);
            p.add(10 * MS, 10 * MS, 5, false);
            p.add(second[0], second[0], second[1], false);
            assertFalse(p.known());
            assertEquals(0, p.width());
        }
    }

    /** A process that is stopped for the last 30 ms of each period reads only before that, and right after a period began. */
    @Test
    void phaseIsLearntWhileStopped() {
        Random r = new Random(7);
        long period = 100 * MS;
        for (int n = 0; n < 300; n++) {
            long phase = r.nextInt((int) period);
            Phase p = new Phase();
            p.restart(period);
            long at = r.nextInt(Integer.MAX_VALUE);
            for (int reading = 0; reading < 100 && !p.known(); reading++) {
                at = p.next(at) + r.nextInt(200_000);
                long into = Math.floorMod(at - phase, period);
                boolean resumed = into > 70 * MS;
                if (resumed) {
                    at += period - into + 50_000 + r.nextInt(1_000_000);
                }
                p.add(at, at + 50_000, Math.floorDiv(at + 20_000 - phase, period) + 1000, resumed);
            }
            assertTrue(p.known(), "phase " + phase + " is not known after 100 readings");
            long off = Math.floorMod(p.begin(at) - phase, period);
            assertTrue(off <= 2 * MS, "phase " + phase + " is off by " + off);
        }
    }

    @Test
    void slackShrinksWithoutStopsAndDoublesAfterOne() {
        Slack s = new Slack();
        s.restart(70 * MS);
        s.learn(10, 10, false);
        assertEquals(5 * MS, s.kept(), "what nothing was held back for teaches nothing");
        for (int i = 0; i < 10; i++) {
            s.learn(2, 0, true);
        }
        long before = s.kept();
        assertTrue(before >= 5 * MS / 2 && before <= 3 * MS, "20 periods without a stop leave " + before);
        s.learn(2, 1, true);
        assertEquals(2 * before, s.kept());
        s.learn(1L << 60, 0, true);
        assertTrue(s.kept() >= MS / 2 && s.kept() <= MS, "it shrinks to " + s.kept());
        for (int i = 0; i < 100; i++) {
            s.learn(1, 1, true);
        }
        assertEquals(70 * MS / 6, s.kept());
    }
}
