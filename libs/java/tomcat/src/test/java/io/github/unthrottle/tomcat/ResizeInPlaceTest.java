package io.github.unthrottle.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM in a cgroup of this kernel, whose limit changes while it works. */
class ResizeInPlaceTest {
    private static final Pattern LINE = Pattern.compile("limit (\\S+) permits (\\d+) tomcat (\\d+) work (\\d+) at once (\\d+) common (\\d+) looks (\\d+) ms (\\d+)");
    /** Two seconds of the library's looks, four a second. */
    private static final int MOST_LOOKS = 8;

    @Test
    void poolsFollowALimitThatChanges(@TempDir Path folder) throws Exception {
        int version = Runtime.version().feature();
        List<String> lines = run(folder);
        List<String> sizes = new ArrayList<>();
        List<String> warnings = new ArrayList<>();
        for (String line : lines) {
            Matcher m = LINE.matcher(line);
            if (line.startsWith("warned: ")) {
                warnings.add(line);
            } else if (m.matches()) {
                sizes.add(m.group(1) + " " + m.group(2) + " " + m.group(3) + " " + m.group(4) + " " + m.group(5) + " " + m.group(6));
                System.out.println(line);
                assertTrue(Integer.parseInt(m.group(7)) <= MOST_LOOKS, line);
            }
        }
        String common = version >= 19 ? "2" : "1";
        assertEquals(List.of("0.5 1 8 1 1 1", "1.5 2 16 2 2 " + common, "0.5 1 8 1 1 1"), sizes, lines::toString);
        String said = String.join("\n", warnings);
        assertEquals(version < 19, said.contains("common has 1 threads, 2 fit the limit: Java " + version
                + " takes the size of a ForkJoinPool at its start; restart with -Djava.util.concurrent.ForkJoinPool.common.parallelism=2"), said);
        assertTrue(said.contains("the collector has 1 threads, 2 fit the limit: the JVM takes their number at its start; restart with -XX:ParallelGCThreads=2"), said);
        assertEquals(version < 19 ? 2 : 1, warnings.size(), said);
    }

    /** The lines of the program, which runs in a cgroup of its own with 0.5 CPUs. */
    private static List<String> run(Path folder) throws IOException, InterruptedException {
        needs(Runtime.getRuntime().availableProcessors() >= 2, "two CPUs");
        Path mount = cpuMount();
        needs(mount != null && Files.isWritable(mount), "root, and the cpu controller on cgroup v1");
        Path group = mount.resolve("unthrottle-java-test-" + ProcessHandle.current().pid());
        Files.createDirectory(group);
        try {
            Files.writeString(group.resolve("cpu.cfs_quota_us"), "50000");
            List<String> command = new ArrayList<>(List.of("sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", group.resolve("cgroup.procs").toString(),
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC", "-Xmx64m", "-cp",
                    System.getProperty("java.class.path"), Resized.class.getName(), group.resolve("cpu.cfs_quota_us").toString(), folder.toString()));
            Process program = new ProcessBuilder(command).redirectErrorStream(true).start();
            try {
                List<String> lines = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8).lines().toList();
                assertEquals(0, program.waitFor(), lines::toString);
                return lines;
            } finally {
                program.destroyForcibly().waitFor();
            }
        } finally {
            Files.delete(group);
        }
    }

    /** Where the cpu controller of cgroup v1 is mounted; null: nowhere. */
    private static Path cpuMount() throws IOException {
        try (Stream<String> mounts = Files.lines(Path.of("/proc/self/mounts"))) {
            return mounts.map(line -> line.split(" "))
                    .filter(f -> f.length > 3 && f[2].equals("cgroup") && Arrays.asList(f[3].split(",")).contains("cpu"))
                    .map(f -> Path.of(f[1])).findFirst().orElse(null);
        }
    }

    private static void needs(boolean there, String what) {
        if (!there) {
            System.out.println("NOT DONE: ResizeInPlaceTest needs " + what); // make check shows it
        }
        Assumptions.assumeTrue(there, "needs " + what);
    }
}
