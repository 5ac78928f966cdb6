package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class LimitTest {
    private static final String V2 = "30 29 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
    private static final String V1 = "33 29 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            + "34 29 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    private static final String NAMESPACE = "not known in this cgroup namespace";
    private static final String CPU = "/sys/fs/cgroup/cpu,cpuacct";

    /** Files by name and text. */
    private static Host files(String... namesAndTexts) {
        Map<String, String> all = new HashMap<>();
        for (int i = 0; i < namesAndTexts.length; i += 2) {
            all.put(namesAndTexts[i], namesAndTexts[i + 1]);
        }
        return new Host() {
            @Override
            public String read(String name) throws IOException {
                String text = all.get(name);
                if (text == null) {
                    throw new NoSuchFileException(name);
                }
                return text;
            }

            @Override
            public long nanos() {
                return 1;
            }

            @Override
            public Reading open(String name) {
                throw new UnsupportedOperationException();
            }

            @Override
            public long processCpuNanos() {
                return -1;
            }

            @Override
            public void sleep(long nanos) {
                throw new UnsupportedOperationException();
            }

            @Override
            public Alarm alarm(Runnable task) {
                throw new UnsupportedOperationException();
            }
        };
    }

    private static Host host(String groups, String mounts, String... more) {
        String[] all = new String[more.length + 4];
        all[0] = "/proc/self/cgroup";
        all[1] = groups;
        all[2] = "/proc/self/mountinfo";
        all[3] = mounts;
        System.arraycopy(more, 0, all, 4, more.length);
        return files(all);
    }

    private static void limit(double cpus, Host host) throws IOException {
        assertEquals(cpus, Limit.read(host).cpus());
    }

    @Test
    void theLeastLimitAlongThePathIsInForce() throws IOException {
        limit(0.7, host("0::/a/b\n", V2, "/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n", "/sys/fs/cgroup/a/cpu.max", "70000 100000\n"));
        limit(2.5, host("4:cpu,cpuacct:/x\n0::/\n", V1 + V2, CPU + "/x/cpu.cfs_quota_us", "50000\n", CPU + "/x/cpu.cfs_period_us", "20000\n",
                CPU + "/cpu.cfs_quota_us", "-1\n", CPU + "/cpu.cfs_period_us", "100000\n"));
        // A container's mount, with the path of the host.
        limit(1.5, host("4:cpu:/docker/1\n", "33 29 0:28 /docker/1 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"));
        // A cgroup namespace that was entered from outside, in what the mount shows.
        limit(0.5, host("0::/../../a\n", "30 29 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/a/cpu.max", "50000 100000"));
        // The host's mount, and one of the namespace's own.
        limit(0.5, host("0::/\n", "30 29 0:26 /.. /host rw - cgroup2 cgroup2 rw\n" + V2, "/sys/fs/cgroup/cpu.max", "50000 100000"));
        limit(0.5, host("0::/\n", "30 29 0:26 / /sys/fs/c\\040g$ rw - cgroup2 x rw\n", "/sys/fs/c g$/cpu.max", "50000 100000"));
    }

    @Test
    void noLimitIsInfinite() throws IOException {
        limit(Double.POSITIVE_INFINITY, host("0::/a\n", V2, "/sys/fs/cgroup/a/cpu.max", "max 100000\n"));
        limit(Double.POSITIVE_INFINITY, host("0::/a\n", V2, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 1\n")); // no cpu controller
    }

    @Test
    void whatIsNotKnownIsSaid() {
        for (String[] c : new String[][] {
            {"/proc/self/cgroup"},
            {"the v1 cpu controller is not mounted here", "/proc/self/cgroup", "4:cpu:/a\n", "/proc/self/mountinfo", V2},
            {NAMESPACE, "/proc/self/cgroup", "0::/../../a\n", "/proc/self/mountinfo", V2, "/sys/fs/cgroup/a/cpu.max", "50000 100000"},
            {NAMESPACE, "/proc/self/cgroup", "1:cpu:/\n", "/proc/self/mountinfo", "32 31 0:29 /../.. /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
            {NAMESPACE, "/proc/self/cgroup", "0::/\n", "/proc/self/mountinfo", "30 29 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                "/sys/fs/cgroup/cpu.stat", "usage_usec 1\n"},
            {NAMESPACE, "/proc/self/cgroup", "0::/../../a\n", "/proc/self/mountinfo", "30 29 0:26 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                "/sys/fs/cgroup/a/cpu.max", "50000 100000"},
            {"no cgroup file system", "/proc/self/cgroup", "", "/proc/self/mountinfo", V2},
            {"/sys/fs/cgroup/a/cpu.stat", "/proc/self/cgroup", "0::/a\n", "/proc/self/mountinfo", V2},
            {"/sys/fs/cgroup/a/cpu.max: \"many\" is not a number of microseconds", "/proc/self/cgroup", "0::/a\n", "/proc/self/mountinfo", V2,
                "/sys/fs/cgroup/a/cpu.max", "many 100000"},
            {"is not \"QUOTA PERIOD\"", "/proc/self/cgroup", "0::/a\n", "/proc/self/mountinfo", V2, "/sys/fs/cgroup/a/cpu.max", "5\u0007"},
            {"is not a number of microseconds", "/proc/self/cgroup", "0::/a\n", "/proc/self/mountinfo", V2, "/sys/fs/cgroup/a/cpu.max", "0 9"},
        }) {
            Host host = files(java.util.Arrays.copyOfRange(c, 1, c.length));
            IOException e = assertThrows(IOException.class, () -> Limit.read(host));
            assertTrue(e.getMessage().contains(c[0]), e.getMessage());
            assertTrue(e.getMessage().indexOf('\u0007') < 0, e.getMessage());
        }
    }

    @Test
    void countersAndUseAreThoseOfTheLevelWithTheLimit() throws IOException {
        Host two = host("0::/a/b\n", V2, "/sys/fs/cgroup/a/b/cpu.max", "max 100000", "/sys/fs/cgroup/a/cpu.max", "70000 100000",
                "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5000\nnr_periods 7\nnr_throttled 3\n");
        Limit l = Limit.read(two);
        assertEquals(new Limit.Counters(7, 3), l.counters(two));
        assertEquals("/sys/fs/cgroup/a/cpu.stat", l.usage());
        byte[] text = two.read(l.usage()).getBytes(StandardCharsets.US_ASCII);
        assertEquals(5_000_000, l.usage(text, text.length));
        assertEquals(-1, l.usage(text, 5));

        Host one = host("4:cpu:/a/b\n5:cpuacct:/a/b\n", "33 29 0:28 / /cpu rw - cgroup cgroup rw,cpu\n34 29 0:29 / /acct rw - cgroup cgroup rw,cpuacct\n",
                "/cpu/a/cpu.cfs_quota_us", "70000", "/cpu/a/cpu.cfs_period_us", "100000", "/cpu/a/b/cpu.cfs_quota_us", "-1",
                "/cpu/a/cpu.stat", "nr_periods 7\nnr_throttled 3\n");
        l = Limit.read(one);
        assertEquals(new Limit.Counters(7, 3), l.counters(one));
        assertEquals("/acct/a/cpuacct.usage", l.usage());
        for (String elsewhere : List.of("5:cpuacct:/\n", "5:cpuacct:/a\n", "5:cpuacct:/c/b\n", "")) {
            assertNull(Limit.read(host("4:cpu:/a/b\n" + elsewhere, "33 29 0:28 / /cpu rw - cgroup cgroup rw,cpu\n34 29 0:29 / /acct rw - cgroup cgroup rw,cpuacct\n",
                    "/cpu/a/b/cpu.cfs_quota_us", "70000", "/cpu/a/b/cpu.cfs_period_us", "100000")).usage(), elsewhere);
        }
        assertEquals(123, l.usage("123\n".getBytes(StandardCharsets.US_ASCII), 4));
        assertEquals(-1, l.usage("\n".getBytes(StandardCharsets.US_ASCII), 1));
        assertThrows(IOException.class, () -> Limit.NONE.counters(one));
    }

    /** The kernel's counters of periods are an int, printed with its sign. */
    @Test
    void countersGoOnPastAnInt() throws IOException {
        Host host = host("0::/a\n", V2, "/sys/fs/cgroup/a/cpu.max", "70000 100000",
                "/sys/fs/cgroup/a/cpu.stat", "usage_usec 5000\nnr_periods -2147483647\nnr_throttled 2147483647\n");
        assertEquals(new Limit.Counters((1L << 31) + 1, (1L << 31) - 1), Limit.read(host).counters(host));
    }

    /** After 2^31-1 counters go on at -2^31, and after -1 at 0. */
    @Test
    void differencesHoldOverEachTurn() throws IOException {
        String[] texts = {"2147483647", "-2147483648", "-1", "0"};
        long[] counts = {(1L << 31) - 1, 1L << 31, (1L << 32) - 1, 0};
        for (int i = 0; i < texts.length; i++) {
            Host host = host("0::/a\n", V2, "/sys/fs/cgroup/a/cpu.max", "70000 100000",
                    "/sys/fs/cgroup/a/cpu.stat", "nr_periods " + texts[i] + "\nnr_throttled " + texts[i] + "\n");
            assertEquals(new Limit.Counters(counts[i], counts[i]), Limit.read(host).counters(host));
        }
        assertEquals(1, Limit.Counters.since(counts[0], counts[1]));
        assertEquals(1, Limit.Counters.since(counts[2], counts[3]));
        assertEquals(-5, Limit.Counters.since(7, 2));
    }

    /** Whatever the files hold, there is a limit, none, or an exception that says what is wrong. */
    @Test
    void anyTextIsReadOrRefused() {
        Random r = new Random(1);
        String[] parts = {"0::", "/a", "/..", "\n", ":", "4:cpu,cpuacct:", " - ", "cgroup2", " cgroup ", "\\040", "\\7", " / ", "cpu", "max", "-1",
            " 100000", "99999999999999999999", "\u0000", "nr_periods", "usage_usec ", "\\134"};
        for (int i = 0; i < 20_000; i++) {
            String[] texts = new String[4];
            for (int t = 0; t < texts.length; t++) {
                StringBuilder s = new StringBuilder();
                for (int n = r.nextInt(12); n > 0; n--) {
                    s.append(parts[r.nextInt(parts.length)]);
                }
                texts[t] = s.toString();
            }
            Host host = host(i % 2 == 0 ? texts[0] : "0::/a\n", i % 3 == 0 ? texts[1] : V2 + V1, "/sys/fs/cgroup/a/cpu.max", texts[2],
                    "/sys/fs/cgroup/a/cpu.stat", texts[3]);
            try {
                Limit l = Limit.read(host);
                assertTrue(l.cpus() > 0, texts[2]);
                byte[] text = texts[3].getBytes(StandardCharsets.ISO_8859_1);
                assertTrue(l.usage(text, text.length) >= -1);
                l.counters(host);
            } catch (IOException e) {
                assertTrue(e.getMessage() != null && e.getMessage().length() < 1000);
            }
        }
    }

    @Test
    void cpusAreTheAllowedOnes() {
        assertEquals(5, Cpus.allowed(files("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,8\n")));
        assertEquals(Integer.MAX_VALUE, Cpus.allowed(files()));
        assertEquals(Integer.MAX_VALUE, Cpus.allowed(files("/proc/self/status", "Cpus_allowed_list:\tall\n")));
    }
}
