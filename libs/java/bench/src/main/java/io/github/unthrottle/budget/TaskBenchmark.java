package io.github.unthrottle.budget;

import java.util.Collection;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/** What a task costs beside the same task without the library, in the same run. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@State(Scope.Thread)
public class TaskBenchmark {
    private final CpuBudget budget = BenchmarkHost.budget();
    private int n;
    private final Runnable task = () -> n++;

    /** The task alone. */
    @Benchmark
    public int bare() {
        task.run();
        return n;
    }

    /** As a task of IO. */
    @Benchmark
    public int io() throws InterruptedException {
        budget.run(TaskClass.IO, task);
        return n;
    }

    /** As a task of APP, paced. */
    @Benchmark
    public int app() throws InterruptedException {
        budget.run(TaskClass.APP, task);
        return n;
    }

    /** As a task of BACKGROUND, paced. */
    @Benchmark
    public int background() throws InterruptedException {
        budget.run(TaskClass.BACKGROUND, task);
        return n;
    }

    /** Runs the benchmarks with JMH's own flags, and prints a line for each. */
    public static void main(String[] flags) throws RunnerException, CommandLineOptionException {
        Collection<RunResult> all = new Runner(new OptionsBuilder().parent(new CommandLineOptions(flags)).include(TaskBenchmark.class.getName())
                .addProfiler(GCProfiler.class).build()).run();
        double bare = Double.NaN;
        for (RunResult r : all) {
            if (r.getPrimaryResult().getLabel().equals("bare")) {
                bare = r.getPrimaryResult().getScore();
            }
        }
        for (RunResult r : all) {
            double score = r.getPrimaryResult().getScore();
            double bytes = r.getSecondaryResults().get("gc.alloc.rate.norm").getScore();
            System.out.printf("%-10s %6.1f ns/task more than bare, %.1f x bare, %.3f bytes/task%n", r.getPrimaryResult().getLabel(),
                    score - bare, score / bare, bytes);
        }
    }
}
