package io.github.unthrottle.budget;

import java.util.List;

/** A budget whose limit the test sets, without pacing. Its time stands, but for the second in which a limit is found. */
public final class FakeLimit {
    private final SimulatedHost host;

    /** The budget under the limit. */
    public final CpuBudget budget;

    /** Starts a budget on a machine with 64 CPUs. */
    public FakeLimit(double cpus) {
        host = new SimulatedHost((long) (cpus * 100 * SimulatedHost.MS));
        host.cpus = "0-63";
        budget = host.start(true);
    }

    /** Sets another limit, and lets the budget find it; 0: none. */
    public void set(double cpus) {
        host.quota = (long) (cpus * 100 * SimulatedHost.MS);
        pass(SimulatedHost.SECOND);
    }

    /** Lets time pass. */
    public void pass(long nanos) {
        host.pass(nanos);
    }

    /** What the budget warned of. */
    public List<String> warnings() {
        return host.warnings;
    }
}
