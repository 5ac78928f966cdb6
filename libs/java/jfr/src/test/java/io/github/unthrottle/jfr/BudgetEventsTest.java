package io.github.unthrottle.jfr;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.TaskClass;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BudgetEventsTest {
    @Test
    void aRecordingHasTheLimitAndTheClasses(@TempDir Path folder) throws Exception {
        FakeLimit limit = new FakeLimit(1.5);
        Path file = folder.resolve("budget.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("io.github.unthrottle.Limit");
            recording.enable("io.github.unthrottle.TaskClass").with("period", "endChunk");
            recording.start();
            CpuBudget.Following events = BudgetEvents.record(limit.budget);
            limit.budget.run(TaskClass.APP, () -> {});
            limit.set(4);
            limit.set(0);
            recording.stop(); // the end of a chunk
            recording.dump(file);
            events.close();
        }
        List<RecordedEvent> all = RecordingFile.readAllEvents(file);
        assertEquals(List.of("1.5", "4.0", "NaN"), all.stream().filter(e -> e.getEventType().getName().endsWith(".Limit"))
                .map(e -> String.valueOf(e.getDouble("cpus"))).collect(Collectors.toList()));
        List<RecordedEvent> apps = all.stream().filter(e -> e.getEventType().getName().endsWith(".TaskClass")
                && e.getString("taskClass").equals("app")).collect(Collectors.toList());
        assertTrue(!apps.isEmpty(), all::toString);
        assertEquals(1, apps.get(apps.size() - 1).getLong("finished"));
    }
}
