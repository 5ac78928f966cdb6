package io.github.unthrottle.budget;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/**
 * Where the cpu controller's files of this process are.
 *
 * @param mount the mount point
 * @param own the cgroup's folder
 * @param usage the folder with the same cgroup's cpuacct.usage on v1; null: there is none
 */
record Place(boolean v2, String mount, String own, String usage) {
    /** Bounds the path of a cgroup. Containers have fewer than ten levels. */
    private static final int MAX_LEVELS = 64;

    /** A cgroup mount of /proc/self/mountinfo. Options are those of the super block: controllers on v1. */
    private record Mount(boolean v2, String root, String point, String options) {
        /**
         * Where the files of a cgroup are. A cgroup outside the mount's root is the root itself in a container that mounts
         * only its own part of the tree, and sees its path on the host. Where a cgroup namespace is entered without a mount of its
         * own, the kernel writes "/.." for what is above it, and does not say what the folders in between are called.
         */
        String folder(String cgroup) throws IOException {
            String below = cgroup;
            boolean hidden = false;
            if (!root.equals("/")) {
                boolean inside = cgroup.equals(root) || cgroup.startsWith(root + "/");
                below = inside ? cgroup.substring(root.length()) : "";
                hidden = !inside && (above(root) || above(cgroup));
            }
            if (hidden || above(below)) {
                throw new IOException("cgroup " + cut(cgroup) + ": " + point + " shows " + cut(root)
                        + ": its folder there is not known in this cgroup namespace; mount the cgroup file system again inside the namespace");
            }
            return clean(point + "/" + below);
        }

        /** Whether a path leads out of the cgroup namespace. */
        private static boolean above(String path) {
            return (path + "/").startsWith("/../");
        }
    }

    /** Reads /proc/self/cgroup and /proc/self/mountinfo. */
    static Place find(Host host) throws IOException {
        String cpu = null;
        String v2 = null;
        String usage = null;
        for (String line : host.read("/proc/self/cgroup").split("\n")) {
            String[] f = line.split(":", 3);
            if (f.length < 3) {
                continue;
            }
            if (has(f[1], "cpu")) {
                cpu = f[2];
            } else if (f[0].equals("0") && f[1].isEmpty()) {
                v2 = f[2];
            }
            if (has(f[1], "cpuacct")) {
                usage = f[2];
            }
        }
        String v2Path = v2;
        List<Mount> mounts = mounts(host.read("/proc/self/mountinfo"));
        if (cpu != null) {
            // In another cgroup of cpuacct than of cpu, the process is counted with others.
            Place counted = cpu.equals(usage) ? in(mounts, m -> !m.v2 && has(m.options, "cpuacct"), usage, null) : null;
            IOException why = new IOException("cgroup " + cut(cpu) + ": the v1 cpu controller is not mounted here");
            Place own = in(mounts, m -> !m.v2 && has(m.options, "cpu"), cpu, why);
            return new Place(false, own.mount, own.own, counted == null ? null : counted.own);
        }
        return in(mounts, m -> v2Path != null && m.v2, v2Path, new IOException("no cgroup file system with the cpu controller is mounted here"));
    }

    /** A cgroup's place in the first mount that shows it. Where none does, it throws why, or returns null where that is null. */
    private static Place in(List<Mount> mounts, Predicate<Mount> fits, String cgroup, IOException why) throws IOException {
        IOException last = why;
        for (Mount m : mounts) {
            if (fits.test(m)) {
                try {
                    return new Place(m.v2, m.point, m.folder(cgroup), null);
                } catch (IOException e) {
                    last = e;
                }
            }
        }
        if (why == null) {
            return null;
        }
        throw last;
    }

    private static List<Mount> mounts(String table) {
        List<Mount> all = new ArrayList<>();
        for (String line : table.split("\n")) {
            int dash = line.indexOf(" - ");
            if (dash < 0) {
                continue;
            }
            String[] front = line.substring(0, dash).split(" ");
            String[] back = line.substring(dash + 3).split(" ");
            if (front.length >= 5 && back.length >= 3 && (back[0].equals("cgroup") || back[0].equals("cgroup2"))) {
                all.add(new Mount(back[0].equals("cgroup2"), unescape(front[3]), clean(unescape(front[4])), back[2]));
            }
        }
        return all;
    }

    private static final Pattern OCTAL = Pattern.compile("\\\\([0-3][0-7][0-7])");

    /** Undoes the octal escapes of mountinfo: blank, tab, line feed and backslash. */
    private static String unescape(String text) {
        return OCTAL.matcher(text).replaceAll(m -> {
            String c = String.valueOf((char) Integer.parseInt(m.group(1), 8));
            return c.equals("\\") ? "\\\\" : c.equals("$") ? "\\$" : c;
        });
    }

    /** A rooted path without empty parts. */
    private static String clean(String path) {
        List<String> parts = new ArrayList<>();
        for (String part : path.split("/")) {
            if (!part.isEmpty()) {
                parts.add(part);
            }
        }
        return "/" + String.join("/", parts);
    }

    private static boolean has(String list, String name) {
        for (String one : list.split(",")) {
            if (one.equals(name)) {
                return true;
            }
        }
        return false;
    }

    /** Bounds what a message repeats of a file. */
    static String cut(String text) {
        return "\"" + text.substring(0, Math.min(text.length(), 40)).replaceAll("\\p{Cntrl}", "?") + "\"";
    }

    /** The folders from the process's own cgroup up to the mount point. */
    List<String> levels() {
        List<String> all = new ArrayList<>();
        for (String at = own; all.size() < MAX_LEVELS; at = at.substring(0, Math.max(1, at.lastIndexOf('/')))) {
            all.add(at);
            if (at.equals(mount) || at.equals("/") || !at.startsWith(mount)) {
                break;
            }
        }
        return all;
    }
}
