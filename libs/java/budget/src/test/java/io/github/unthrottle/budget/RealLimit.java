package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** The limit of a JVM in a cgroup of this kernel, which changes while it works. The JVM changes it, and says how its pools follow. */
public final class RealLimit {
    /** Two seconds of the library's looks, four a second. */
    private static final int MOST_LOOKS = 8;
    private static final double AT_START = 0.5;
    private static final double[] LATER = {1.5, 4, 0.5};
    private static final String LOOKS = " looks ";
    private static final String MAX = "cpu.max"; // of v2

    private RealLimit() {}

    /**
     * Runs a program in a cgroup of its own with 0.5 CPUs, which calls {@link #change} with its only argument, and returns its
     * lines. The test is left out where it cannot be done.
     */
    public static List<String> run(Class<?> program) throws IOException, InterruptedException {
        needs(Runtime.getRuntime().availableProcessors() >= 2, "two CPUs");
        Path mount = cpuMount();
        needs(mount != null && Files.isWritable(mount), "root, and the cpu controller: on cgroup v1, or handed to the cgroups below the root of v2");
        Path group = mount.resolve("unthrottle-java-test-" + ProcessHandle.current().pid());
        Files.createDirectory(group);
        try {
            Path quota = group.resolve(Files.exists(group.resolve(MAX)) ? MAX : "cpu.cfs_quota_us");
            write(quota, AT_START);
            List<String> command = new ArrayList<>(List.of("sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", group.resolve("cgroup.procs").toString(),
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC", "-Xmx64m",
                    "-cp", System.getProperty("java.class.path"), program.getName(), quota.toString()));
            Process jvm = new ProcessBuilder(command).redirectErrorStream(true).start();
            try {
                List<String> lines = new String(jvm.getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines().toList();
                assertEquals(0, jvm.waitFor(), lines::toString);
                return lines;
            } finally {
                jvm.destroyForcibly().waitFor();
            }
        } finally {
            Files.delete(group);
        }
    }

    /** The sizes that the lines say, without what they cost. Each change was followed within two seconds of looks. */
    public static List<String> sizes(List<String> lines) {
        List<String> sizes = new ArrayList<>();
        for (String line : lines) {
            int looks = line.indexOf(LOOKS);
            if (looks >= 0) {
                System.out.println(line);
                sizes.add(line.substring(0, looks));
                assertTrue(Integer.parseInt(line.substring(looks + LOOKS.length()).split(" ")[0]) <= MOST_LOOKS, line);
            }
        }
        return sizes;
    }

    /**
     * Changes the limit to 1.5, 4 and 0.5 CPUs. After each change it waits until the pools have been told and are settled, counts
     * how many times the library looked meanwhile, and writes a line.
     */
    public static void change(CpuBudget budget, String quota, BooleanSupplier settled, Supplier<String> sizes) throws IOException, InterruptedException {
        Double[] followed = {null};
        budget.onChange(() -> { // it is told after the pools
            synchronized (followed) {
                followed[0] = budget.snapshot().limitCpus();
            }
        });
        say(AT_START, sizes, 0, System.nanoTime());
        for (double limit : LATER) {
            long begun = System.nanoTime();
            write(Path.of(quota), limit);
            int looks = 0;
            Snapshot last = budget.snapshot();
            while (!is(followed, limit) || !settled.getAsBoolean()) {
                Thread.sleep(5);
                Snapshot now = budget.snapshot();
                if (!Objects.equals(now.usedCpus(), last.usedCpus()) || !Objects.equals(now.periods(), last.periods())) {
                    looks++; // what it saw is another
                }
                last = now;
            }
            say(limit, sizes, looks, begun);
        }
    }

    private static boolean is(Double[] followed, double limit) {
        synchronized (followed) {
            return Objects.equals(followed[0], limit);
        }
    }

    private static void say(double limit, Supplier<String> sizes, int looks, long begun) {
        long millis = (System.nanoTime() - begun) / 1_000_000;
        System.out.println(limit + ": " + sizes.get() + LOOKS + looks + " in " + millis + " ms");
    }

    private static void write(Path quota, double limit) throws IOException {
        String micros = Long.toString(Math.round(limit * 100_000));
        Files.writeString(quota, quota.endsWith(MAX) ? micros + " 100000" : micros);
    }

    /** Where cgroups with the cpu controller can be made; null: nowhere. */
    private static Path cpuMount() throws IOException {
        try (Stream<String> mounts = Files.lines(Path.of("/proc/self/mounts"))) {
            return mounts.map(line -> line.split(" ")).filter(f -> f.length > 3 && hasCpu(f[2], f[3], Path.of(f[1])))
                    .map(f -> Path.of(f[1])).findFirst().orElse(null);
        }
    }

    private static boolean hasCpu(String type, String options, Path mount) {
        if (type.equals("cgroup")) {
            return Arrays.asList(options.split(",")).contains("cpu");
        }
        try {
            return type.equals("cgroup2") && Arrays.asList(Files.readString(mount.resolve("cgroup.subtree_control")).trim().split(" ")).contains("cpu");
        } catch (IOException e) {
            return false;
        }
    }

    private static void needs(boolean there, String what) {
        if (!there) {
            System.out.println("NOT DONE: a JVM whose limit changes needs " + what); // make check shows it
        }
        Assumptions.assumeTrue(there, "needs " + what);
    }
}
