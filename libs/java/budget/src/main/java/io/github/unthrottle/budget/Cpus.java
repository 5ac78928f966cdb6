package io.github.unthrottle.budget;

import java.io.IOException;

/** How many CPUs this process may run on, whatever its quota: availableProcessors() of the JVM has the quota in it. */
final class Cpus {
    private Cpus() {}

    /** The number of CPUs in Cpus_allowed_list of /proc/self/status; a large number where it is not known. */
    static int allowed(Host host) {
        try {
            for (String line : host.read("/proc/self/status").split("\n")) {
                if (line.startsWith("Cpus_allowed_list:")) {
                    return count(line.substring("Cpus_allowed_list:".length()).strip());
                }
            }
        } catch (IOException | RuntimeException e) {
            // a limit counts then, however many CPUs there are
        }
        return Integer.MAX_VALUE;
    }

    /** Counts the CPUs of a list such as 0-3,8. */
    private static int count(String list) {
        int n = 0;
        for (String range : list.split(",")) {
            String[] ends = range.split("-", 2);
            n += Integer.parseInt(ends[ends.length - 1]) - Integer.parseInt(ends[0]) + 1;
        }
        return n > 0 ? n : Integer.MAX_VALUE;
    }
}
