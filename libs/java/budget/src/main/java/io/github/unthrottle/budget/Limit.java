package io.github.unthrottle.budget;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;

/**
 * The bandwidth limit in force: the least quota / period from this process's cgroup up to the highest one in sight.
 *
 * @param quotaNanos 0: there is none
 * @param stat the file with the counters of the level that has the limit; null: none
 * @param usage the file with the CPU time of that level; null: none
 */
record Limit(long quotaNanos, long periodNanos, String stat, String usage, boolean v2) {
    static final Limit NONE = new Limit(0, 0, null, null, false);

    boolean limited() {
        return quotaNanos > 0 && periodNanos > 0;
    }

    /** Quota / period; infinite without a limit. */
    double cpus() {
        return limited() ? (double) quotaNanos / periodNanos : Double.POSITIVE_INFINITY;
    }

    /** Finds the limit in force. An exception means that the limit is not known. */
    static Limit read(Host host) throws IOException {
        Place place = Place.find(host);
        Limit least = NONE;
        boolean any = false;
        for (String folder : place.levels()) {
            Limit l;
            try {
                l = level(host, place, folder);
            } catch (NoSuchFileException | FileNotFoundException e) {
                continue; // the root cgroup has no quota, nor has a v2 cgroup without the cpu controller
            }
            any = true;
            if (l.cpus() < least.cpus()) {
                least = l;
            }
        }
        if (!any) {
            host.read(place.own() + "/cpu.stat"); // every v2 cgroup has it, so that its lack says that the cgroup is gone
        }
        return least;
    }

    private static Limit level(Host host, Place place, String folder) throws IOException {
        String stat = folder + "/cpu.stat";
        if (place.v2()) {
            String name = folder + "/cpu.max";
            String text = host.read(name).strip();
            int blank = text.indexOf(' ');
            if (blank < 0) {
                throw new IOException(name + ": " + Place.cut(text) + " is not \"QUOTA PERIOD\"");
            }
            String quota = text.substring(0, blank);
            long period = micros(name, text.substring(blank + 1));
            return new Limit(quota.equals("max") ? 0 : micros(name, quota), period, stat, stat, true);
        }
        String name = folder + "/cpu.cfs_quota_us";
        String quota = host.read(name).strip();
        // cpuacct is mounted together with cpu, or has the same tree elsewhere.
        String usage = null;
        if (place.usage() != null && place.own().startsWith(folder)) {
            String above = place.own().substring(folder.length());
            if (place.usage().endsWith(above)) {
                usage = place.usage().substring(0, place.usage().length() - above.length()) + "/cpuacct.usage";
            }
        }
        if (quota.equals("-1")) {
            return new Limit(0, 0, stat, usage, false);
        }
        String period = folder + "/cpu.cfs_period_us";
        return new Limit(micros(name, quota), micros(period, host.read(period)), stat, usage, false);
    }

    /** Parses a figure of a cgroup file. */
    private static long micros(String name, String text) throws IOException {
        try {
            long us = Long.parseLong(text.strip());
            if (us > 0 && us <= Long.MAX_VALUE / 1000) {
                return us * 1000;
            }
        } catch (NumberFormatException e) {
            // the message below says it
        }
        throw new IOException(name + ": " + Place.cut(text.strip()) + " is not a number of microseconds");
    }

    /** The counters of the level that has the limit: nr_periods and nr_throttled, as unsigned 32 bits where they are beyond the kernel's int. */
    record Counters(long periods, long throttled) {
        /** How many were counted from one reading to the next; below 0: the counter went back. After 2^32-1 comes 0. */
        static int since(long before, long now) {
            return (int) (now - before);
        }
    }

    Counters counters(Host host) throws IOException {
        if (stat == null) {
            throw new IOException("no cgroup of this process has a limit");
        }
        String text = host.read(stat);
        long periods = value(text, "nr_periods");
        if (periods < 0) {
            throw new IOException(stat + ": no nr_periods");
        }
        return new Counters(periods, Math.max(0, value(text, "nr_throttled")));
    }

    /**
     * The number of a line "KEY NUMBER"; -1: there is no such line. Some numbers are an int in the kernel (struct cfs_bandwidth): after
     * 2^31-1, which is 25 days of periods of 1 ms, they go on at -2^31, and read as 32 bits without a sign they go on upwards.
     */
    static long value(String text, String key) {
        for (String line : text.split("\n")) {
            if (line.length() > key.length() && line.startsWith(key) && line.charAt(key.length()) == ' ') {
                try {
                    long n = Long.parseLong(line.substring(key.length() + 1).strip());
                    return n >= 0 ? n : n >= Integer.MIN_VALUE ? Integer.toUnsignedLong((int) n) : -1;
                } catch (NumberFormatException e) {
                    return -1;
                }
            }
        }
        return -1;
    }

    private static final byte[] USAGE_KEY = "usage_usec ".getBytes(java.nio.charset.StandardCharsets.US_ASCII);

    /**
     * CPU time in nanoseconds from the first bytes of the usage file: a number, or on v2 the first line of cpu.stat. It
     * allocates nothing: it is read on the way of tasks. -1: that is not CPU time.
     */
    long usage(byte[] text, int length) {
        int at = 0;
        if (v2) {
            for (; at < USAGE_KEY.length; at++) {
                if (at >= length || text[at] != USAGE_KEY[at]) {
                    return -1;
                }
            }
        }
        int begin = at;
        long n = 0;
        for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
            if (n > Long.MAX_VALUE / 100_000) {
                return -1;
            }
            n = n * 10 + text[at] - '0';
        }
        return at == begin ? -1 : v2 ? n * 1000 : n;
    }
}
