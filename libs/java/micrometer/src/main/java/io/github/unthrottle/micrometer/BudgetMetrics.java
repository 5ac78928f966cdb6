package io.github.unthrottle.micrometer;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Snapshot;
import io.github.unthrottle.budget.TaskClass;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** A CPU budget's gauges. What was not measured is NaN. */
public final class BudgetMetrics implements MeterBinder {
    private static final String PREFIX = "unthrottle.budget.";

    private final CpuBudget budget;

    /** The gauges of a budget. */
    public BudgetMetrics(CpuBudget budget) {
        this.budget = budget;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        gauge(registry, "limit.cpus", "CPU limit in force; NaN without one.", Snapshot::limitCpus);
        gauge(registry, "used.cpus", "CPUs that the process used lately.", Snapshot::usedCpus);
        gauge(registry, "wanted.cpus", "CPUs used, and one for each task that waits.", Snapshot::wantedCpus);
        gauge(registry, "paced", "1 while APP and BACKGROUND hold back before the kernel stops all.", s -> s.paced() ? 1 : 0);
        counter(registry, "periods", "Periods of the cgroup with the limit (nr_periods).", Snapshot::periods);
        counter(registry, "throttled.periods", "Periods in which the kernel stopped that cgroup (nr_throttled).", Snapshot::stopped);
        for (TaskClass c : TaskClass.values()) {
            of(registry, c, "permits", "Tasks of a class that may run at once; 0: as many as come.", Snapshot.Tasks::permits);
            of(registry, c, "running.tasks", "Tasks that run.", Snapshot.Tasks::running);
            of(registry, c, "waiting.tasks", "Tasks that wait.", Snapshot.Tasks::waiting);
            count(registry, c, "finished.tasks", "Permits that were given back: a task counts once, and once more for each wait in which others had its permit.", Snapshot.Tasks::finished);
            count(registry, c, "held", "How many times pacing made the next task wait.", Snapshot.Tasks::held);
            count(registry, c, "late.tasks", "Tasks that were rejected, since they would have started too late.", Snapshot.Tasks::late);
        }
    }

    private static double number(Number n) {
        return n == null ? Double.NaN : n.doubleValue();
    }

    private void gauge(MeterRegistry r, String name, String help, Function<Snapshot, Number> value) {
        Gauge.builder(PREFIX + name, budget, b -> number(value.apply(b.snapshot()))).description(help).register(r);
    }

    private void counter(MeterRegistry r, String name, String help, Function<Snapshot, Number> value) {
        FunctionCounter.builder(PREFIX + name, budget, b -> number(value.apply(b.snapshot()))).description(help).register(r);
    }

    private void of(MeterRegistry r, TaskClass c, String name, String help, ToDoubleFunction<Snapshot.Tasks> value) {
        Gauge.builder(PREFIX + name, budget, b -> value.applyAsDouble(b.snapshot().of(c))).tag("class", c.label()).description(help).register(r);
    }

    private void count(MeterRegistry r, TaskClass c, String name, String help, ToDoubleFunction<Snapshot.Tasks> value) {
        FunctionCounter.builder(PREFIX + name, budget, b -> value.applyAsDouble(b.snapshot().of(c))).tag("class", c.label()).description(help)
                .register(r);
    }
}
