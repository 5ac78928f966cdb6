package io.github.unthrottle.budget;

import static io.github.unthrottle.budget.SimulatedHost.MS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PaceTest {
    /** A long task counts while it runs, and not all at once when it ends. */
    @Test
    void wallTimeOfTasks() {
        ClassQueue q = new ClassQueue(TaskClass.APP);
        for (long origin : new long[] {0, -5 * MS, Long.MAX_VALUE - 20 * MS}) {
            long before = q.wallTime(origin);
            int one = q.start(origin);
            int other = q.start(origin + 10 * MS);
            assertEquals(40 * MS, q.wallTime(origin + 25 * MS) - before);
            q.finish(origin, one, origin + 30 * MS);
            assertEquals(55 * MS, q.wallTime(origin + 35 * MS) - before);
            q.finish(origin + 10 * MS, other, origin + 35 * MS);
            assertEquals(55 * MS, q.wallTime(origin + 99 * MS) - before);
        }
    }

    /** The lines that the library for Go runs, too: a call, its arguments and what it gives, in ns. */
    @Test
    void vectors() throws Exception {
        Slack slack = new Slack();
        Phase phase = new Phase();
        Mean mean = new Mean();
        Others others = new Others();
        Busy busy = new Busy();
        int lines = 0;
        for (String line : Files.readAllLines(Path.of("../../go/pace/testdata/vectors.txt"))) {
            if (line.startsWith("#")) {
                continue;
            }
            lines++;
            String[] halves = line.split(" = ");
            String[] words = halves[0].split(" ");
            long[] a = new long[words.length - 1];
            for (int i = 0; i < a.length; i++) {
                a[i] = words[i + 1].equals("true") ? 1 : words[i + 1].equals("false") ? 0 : Long.parseLong(words[i + 1]);
            }
            long got;
            switch (words[0]) {
                case "decide":
                    got = Pace.decide(a[0], a[1], a[2], a[3], a[4], (int) a[5], a[6], a[7]);
                    break;
                case "slack.restart":
                    slack.restart(a[0]);
                    got = slack.kept();
                    break;
                case "slack.learn":
                    slack.learn(a[0], a[1], a[2] == 1);
                    got = slack.kept();
                    break;
                case "phase.restart":
                    phase.restart(a[0]);
                    got = phase.next(0);
                    break;
                case "phase.add":
                    phase.add(a[0], a[1], a[2], a[3] == 1);
                    got = phase.next(a[1]);
                    break;
                case "phase.begin":
                    got = phase.begin(a[0]);
                    break;
                case "mean.restart":
                    mean = new Mean();
                    got = mean.high();
                    break;
                case "mean.add":
                    mean.add(a[0]);
                    got = mean.high();
                    break;
                case "others.restart":
                    others.restart();
                    got = others.left(a[0]);
                    break;
                case "others.learn":
                    others.learn(a[0], a[1]);
                    got = others.left(a[2]);
                    break;
                case "busy.restart":
                    busy.restart();
                    got = busy.cost(1_000_000_000L);
                    break;
                case "busy.learn":
                    busy.learn(a[0], a[1]);
                    got = busy.cost(1_000_000_000L);
                    break;
                default:
                    throw new AssertionError(line + ": no such call");
            }
            assertEquals(Long.parseLong(halves[1]), got, line);
        }
        assertTrue(lines >= 500, lines + " lines");
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
}
