package io.github.unthrottle.agent;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingStream;

/**
 * A file with the full name of each thread by its number in the kernel, in this PID namespace. The numbers come from the flight recorder,
 * so that no safepoint stops the threads.
 */
final class ThreadNames {
    private static final Duration EVERY = Duration.ofSeconds(10);
    /** Bounds the file. */
    private static final int MOST = 20_000;

    private final Path file;
    private final Map<Long, String> names = new TreeMap<>();
    private boolean changed;
    private boolean failed;

    private ThreadNames(Path file) {
        this.file = file;
    }

    /** Keeps the file while the program runs. The events of a stream come one after another, in a thread of its own. */
    static void write(Path file) {
        ThreadNames n = new ThreadNames(file);
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
        changed |= name != null && !name.equals(names.put(t.getOSThreadId(), name));
    }

    private void remove(RecordedThread t) {
        changed |= t != null && names.remove(t.getOSThreadId()) != null;
    }

    private void flush() {
        if (!changed) {
            return;
        }
        changed = false;
        StringBuilder text = new StringBuilder();
        names.forEach((tid, name) -> text.append(tid).append(' ').append(name.replaceAll("\\p{Cntrl}", "?")).append('\n'));
        try {
            Path fresh = file.resolveSibling(file.getFileName() + ".new");
            Files.writeString(fresh, text);
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            if (!failed) {
                failed = true;
                Agent.say("threads=" + file + ": " + e);
            }
        }
    }
}
