package io.github.unthrottle.jfr;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Snapshot;
import io.github.unthrottle.budget.TaskClass;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Period;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;

/** A CPU budget in recordings of the JDK Flight Recorder: the limit when it changes, and each class once a second. */
public final class BudgetEvents {
    private BudgetEvents() {}

    /** The limit that is in force from now on. */
    @Name("io.github.unthrottle.Limit")
    @Label("CPU limit")
    @Category("CPU budget")
    @StackTrace(false)
    static final class LimitEvent extends Event {
        @Label("CPUs")
        @Description("NaN without a limit")
        double cpus;

        @Label("Permits of APP")
        @Description("0: as many as come")
        int appPermits;
    }

    /** A class of tasks. */
    @Name("io.github.unthrottle.TaskClass")
    @Label("Class of tasks")
    @Category("CPU budget")
    @Period("1 s")
    @Enabled
    @StackTrace(false)
    static final class ClassEvent extends Event {
        @Label("Class")
        String taskClass;

        @Label("Permits")
        @Description("0: as many as come")
        int permits;

        @Label("Running tasks")
        int running;

        @Label("Waiting tasks")
        int waiting;

        @Label("Overdue tasks")
        int overdue;

        @Label("Finished tasks")
        long finished;

        @Label("Held back by pacing")
        long held;

        @Label("Rejected tasks")
        long late;

        @Label("Expected wait")
        @Timespan
        long expected;
    }

    /** Records a budget's events until the result is closed. */
    public static CpuBudget.Following record(CpuBudget budget) {
        Runnable classes = () -> {
            Snapshot s = budget.snapshot();
            for (TaskClass c : TaskClass.values()) {
                Snapshot.Tasks of = s.of(c);
                ClassEvent e = new ClassEvent();
                e.taskClass = c.label();
                e.permits = of.permits();
                e.running = of.running();
                e.waiting = of.waiting();
                e.overdue = of.overdue();
                e.finished = of.finished();
                e.held = of.held();
                e.late = of.late();
                e.expected = of.expectedNanos();
                e.commit();
            }
        };
        FlightRecorder.addPeriodicEvent(ClassEvent.class, classes);
        CpuBudget.Following limit = budget.onChange(() -> {
            Snapshot s = budget.snapshot();
            LimitEvent e = new LimitEvent();
            e.cpus = s.limitCpus() == null ? Double.NaN : s.limitCpus();
            e.appPermits = s.of(TaskClass.APP).permits();
            e.commit();
        });
        return () -> {
            FlightRecorder.removePeriodicEvent(classes);
            limit.close();
        };
    }
}
