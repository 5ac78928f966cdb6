package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

class TaskBenchmarkTest {
    /** The benchmark runs, within a paced budget. It measures nothing here. */
    @Test
    void smoke() throws RunnerException, InterruptedException {
        Collection<RunResult> all = new Runner(new OptionsBuilder().include(TaskBenchmark.class.getName()).forks(0).warmupIterations(0)
                .verbosity(VerboseMode.SILENT).measurementIterations(1).measurementTime(TimeValue.milliseconds(20)).build()).run();
        assertEquals(4, all.size());
        CpuBudget b = BenchmarkHost.budget();
        while (!b.snapshot().paced()) {
            b.run(TaskClass.APP, () -> {});
        }
        assertTrue(b.snapshot().of(TaskClass.APP).permits() > 0);
    }
}
