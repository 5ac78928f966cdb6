package io.github.unthrottle.agent;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Snapshot;
import io.github.unthrottle.budget.TaskClass;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingStream;

/**
 * A file with what the budget has in force, and with the class and the full name of each thread by its number in the kernel, in this PID
 * namespace. The numbers come from the flight recorder, so that no safepoint stops the threads. libs/go writes the same lines, without threads.
 */
final class ThreadNames {
    private static final Duration EVERY = Duration.ofSeconds(10);
    /** Bounds the file. */
    private static final int MOST = 20_000;

    private final Path file;
    private final CpuBudget budget;
    /** Number and start time, so that a reader knows a file that an earlier process left. */
    private final String process;
    private final Map<Long, Named> names = new TreeMap<>();
    private String written = "";
    private boolean failed;

    /** A thread's name, and its number in Java. */
    private record Named(String name, long id) {}

    private ThreadNames(Path file, CpuBudget budget) throws IOException {
        this.file = file;
        this.budget = budget;
        this.process = processOf(Files.readString(Path.of("/proc/self/stat")));
    }

    /** Number and start time, in ticks since the boot, of proc_pid_stat(5). */
    static String processOf(String stat) {
        String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" "); // the name may have blanks and brackets
        return stat.substring(0, stat.indexOf(' ')) + " " + fields[22 - 3]; // starttime is the 22nd field, the third comes first here
    }

    /** Keeps the file while the program runs. The events of a stream come one after another, in a thread of its own. */
    static void write(Path file, CpuBudget budget) throws IOException {
        ThreadNames n = new ThreadNames(file, budget);
        budget.rememberThreads();
        RecordingStream events = new RecordingStream();
        events.enable("jdk.ThreadCPULoad").withPeriod(EVERY);
        events.enable("jdk.ThreadStart").withoutStackTrace();
        events.enable("jdk.ThreadEnd");
        events.setReuse(true);
        events.onEvent("jdk.ThreadCPULoad", e -> n.add(e.getThread()));
        events.onEvent("jdk.ThreadStart", e -> n.add(e.getThread()));
        events.onEvent("jdk.ThreadEnd", e -> n.remove(e.getThread()));
        events.onFlush(n::flush);
        events.startAsync();
    }

    private void add(RecordedThread t) {
        if (t == null || t.getOSThreadId() <= 0 || names.size() >= MOST) {
            return;
        }
        String name = t.getJavaName() == null ? t.getOSName() : t.getJavaName();
        if (name != null) {
            names.put(t.getOSThreadId(), new Named(name.replaceAll("\\p{Cntrl}", "?"), t.getJavaThreadId()));
        }
    }

    private void remove(RecordedThread t) {
        if (t != null) {
            names.remove(t.getOSThreadId());
        }
    }

    private String text() {
        Snapshot s = budget.snapshot();
        StringBuilder text = new StringBuilder("unthrottle-budget 1\nprocess ").append(process).append('\n');
        if (s.limitCpus() != null) {
            text.append("limit_cpus ").append(s.limitCpus()).append('\n');
        }
        text.append("paced ").append(s.paced()).append('\n');
        for (TaskClass c : TaskClass.values()) {
            text.append("permits ").append(name(c)).append(' ').append(s.of(c).permits()).append('\n');
        }
        Map<Long, TaskClass> classes = new HashMap<>();
        budget.classesOfThreads().forEach((thread, c) -> classes.put(thread.getId(), c));
        names.forEach((tid, thread) -> {
            TaskClass c = classes.get(thread.id());
            if (c != null) {
                text.append("class ").append(name(c)).append(' ').append(tid).append('\n');
            }
        });
        names.forEach((tid, thread) -> text.append(tid).append(' ').append(thread.name()).append('\n'));
        return text.toString();
    }

    private static String name(TaskClass c) {
        return c.name().toLowerCase(Locale.ROOT);
    }

    private void flush() {
        String text = text();
        if (text.equals(written)) {
            return;
        }
        try {
            Path fresh = file.resolveSibling(file.getFileName() + ".new");
            Files.deleteIfExists(fresh);
            Files.writeString(fresh, text, StandardOpenOption.CREATE_NEW); // nothing is written through a link that another user made
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            written = text;
            failed = false;
        } catch (IOException e) { // the next flush tries again
            if (!failed) {
                failed = true;
                Agent.say("threads=" + file + ": " + e);
            }
        }
    }
}
