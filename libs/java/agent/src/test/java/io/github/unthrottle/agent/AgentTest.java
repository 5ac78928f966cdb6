package io.github.unthrottle.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.TaskClass;
import java.io.File;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class AgentTest {
    private static Tomcat tomcat(Path folder) throws LifecycleException {
        Tomcat t = new Tomcat();
        t.setBaseDir(folder.toString());
        t.setPort(0);
        t.getConnector().setProperty("address", "127.0.0.1");
        t.start();
        return t;
    }

    private static int most(Tomcat t) {
        return ((ThreadPoolExecutor) t.getConnector().getProtocolHandler().getExecutor()).getMaximumPoolSize();
    }

    private static int kept(Tomcat t) {
        return ((ThreadPoolExecutor) t.getConnector().getProtocolHandler().getExecutor()).getCorePoolSize();
    }

    @Test
    void tomcatsOfJmxFollowTheLimitWheneverTheyCome(@TempDir Path folder) throws LifecycleException {
        FakeLimit limit = new FakeLimit(1);
        Tomcat first = tomcat(folder);
        new JmxTomcats(ManagementFactory.getPlatformMBeanServer(), limit.budget, 8).watch();
        assertEquals(8, most(first)); // fewer than the ten that it keeps idle
        assertEquals(8, kept(first));
        Tomcat second = tomcat(folder);
        limit.set(4);
        assertEquals(32, most(first));
        assertEquals(32, most(second));
        assertEquals(10, kept(first));
        assertEquals(10, kept(second));
        first.stop();
        first.destroy();
        limit.set(0);
        assertEquals(200, most(second));
        second.stop();
        second.destroy();
        assertEquals(List.of("the CPU limit is gone; the program runs on as without one"), limit.warnings());
    }

    @Test
    void aProcessIsItsNumberAndStart() {
        assertEquals("7 4711", ThreadNames.processOf("7 (a b) c) S" + " 1".repeat(18) + " 4711 0"));
    }

    @Test
    void optionsThatMakeNoSenseSayWhatThereIs() {
        FakeLimit limit = new FakeLimit(1);
        for (String wrong : new String[] {"tomcat=many", "tomcat=0", "tomcats=8", "threads="}) {
            String said = assertThrows(IllegalArgumentException.class, () -> Agent.start(wrong, limit.budget)).getMessage();
            assertTrue(said.startsWith("option " + wrong + ": "), said);
        }
    }

    /** A program with the agent, packed as the build packs it, runs, and its threads are in the file with their full names. */
    @Test
    void aProgramRunsWithTheAgent(@TempDir Path folder) throws Exception {
        Path jar = folder.resolve("agent.jar");
        Manifest manifest = new Manifest(Files.newInputStream(Path.of("src/main/manifest/MANIFEST.MF")));
        try (OutputStream out = Files.newOutputStream(jar); JarOutputStream zip = new JarOutputStream(out, manifest)) {
            for (Path classes : List.of(Path.of("target/classes"), Path.of("../budget/target/classes"))) {
                try (Stream<Path> all = Files.walk(classes)) {
                    for (Path c : all.filter(p -> p.toString().endsWith(".class") && !p.endsWith("module-info.class")).sorted()
                            .collect(Collectors.toList())) {
                        String name = classes.relativize(c).toString();
                        if (!classes.startsWith("target") || !name.contains("/budget/")) { // the build unpacks them there
                            zip.putNextEntry(new ZipEntry(name));
                            zip.write(Files.readAllBytes(c));
                        }
                    }
                }
            }
        }
        Path threads = folder.resolve("threads");
        Process program = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-XX:TieredStopAtLevel=1",
                "-javaagent:" + jar + "=threads=" + threads, "-cp", Path.of("target/test-classes").toAbsolutePath() + File.pathSeparator, Program.class.getName())
                .redirectErrorStream(true).redirectOutput(folder.resolve("said").toFile()).start();
        try {
            String want = Program.NAME;
            while (!Files.exists(threads) || !Files.readString(threads).contains(want)) {
                assertTrue(program.isAlive(), () -> "the program ended: " + read(folder.resolve("said")));
                Thread.sleep(50);
            }
            String line = Files.readString(threads).lines().filter(l -> l.endsWith(" " + want)).findFirst().orElseThrow();
            String tid = line.substring(0, line.indexOf(' '));
            Path comm = Path.of("/proc/" + program.pid() + "/task/" + tid + "/comm");
            assertTrue(want.startsWith(Files.readString(comm).strip()), line);
            while (!Files.readString(threads).lines().anyMatch(("class background " + tid)::equals)) {
                assertTrue(program.isAlive(), () -> "the program ended: " + read(folder.resolve("said")));
                Thread.sleep(50);
            }
            List<String> lines = Files.readAllLines(threads);
            assertEquals("unthrottle-budget 1", lines.get(0));
            assertEquals("process " + ThreadNames.processOf(Files.readString(Path.of("/proc/" + program.pid() + "/stat"))), lines.get(1));
            assertTrue(lines.stream().anyMatch(l -> l.matches("permits app \\d+")), lines.toString());
            assertTrue(lines.stream().anyMatch(l -> l.matches("paced (true|false)")), lines.toString());
        } finally {
            program.destroy();
            program.waitFor();
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (java.io.IOException e) {
            return e.toString();
        }
    }

    /** A program with a thread of a long name. */
    public static final class Program {
        static final String NAME = "elasticsearch[node-1][write][T#1]";

        public static void main(String[] args) throws InterruptedException {
            Thread t = new Thread(() -> {
                for (long n = 0; ; n++) {
                    try {
                        CpuBudget.ofProcess().run(TaskClass.BACKGROUND, () -> {});
                        Thread.sleep(10);
                    } catch (InterruptedException e) {
                        return;
                    }
                }
            }, NAME);
            t.start();
            t.join();
        }
    }
}
