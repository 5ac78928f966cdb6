package io.github.unthrottle.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;

class BudgetMetricsTest {
    @Test
    void metersSayWhatTheSnapshotSays() throws Exception {
        FakeLimit limit = new FakeLimit(1.5);
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new BudgetMetrics(limit.budget).bindTo(registry);
        assertEquals(1.5, registry.get("unthrottle.budget.limit.cpus").gauge().value());
        limit.budget.run(TaskClass.APP, () -> {});
        Permit p = limit.budget.acquire(TaskClass.APP);
        limit.budget.acquire(TaskClass.APP, null, Permit::close, null);
        assertEquals(1, registry.get("unthrottle.budget.permits").tag("class", "app").gauge().value());
        assertEquals(1, registry.get("unthrottle.budget.running.tasks").tag("class", "app").gauge().value());
        assertEquals(1, registry.get("unthrottle.budget.waiting.tasks").tag("class", "app").gauge().value());
        assertEquals(1, registry.get("unthrottle.budget.finished.tasks").tag("class", "app").functionCounter().count());
        p.close();
        limit.set(0);
        assertEquals(Double.NaN, registry.get("unthrottle.budget.limit.cpus").gauge().value());
    }
}
