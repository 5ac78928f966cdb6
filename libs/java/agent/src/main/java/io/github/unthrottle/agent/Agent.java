package io.github.unthrottle.agent;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Pools;
import io.github.unthrottle.budget.TaskClass;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.concurrent.ForkJoinPool;

/**
 * For programs whose code cannot be changed: {@code -javaagent:unthrottle-agent.jar}. The common pool and the carriers of virtual threads
 * follow the limit, where this Java can; else one message has the setting. Options are separated by commas:
 *
 * <ul>
 * <li>{@code tomcat=8}: Tomcat's pools, as JMX shows them, have 8 threads for each CPU of the limit.
 * <li>{@code threads=FILE}: keeps a file of what the budget has in force, and of the name and the class of each thread, for tools outside.
 * </ul>
 *
 * <p>It changes no class. What goes wrong is said, and the program runs on as without it.
 */
public final class Agent {
    private Agent() {}

    /** With the program. */
    public static void premain(String options, Instrumentation unused) {
        try {
            start(options == null ? "" : options, CpuBudget.ofProcess());
        } catch (RuntimeException | LinkageError e) {
            say("it does nothing: " + e.getMessage());
        }
    }

    /** In a program that runs. */
    public static void agentmain(String options, Instrumentation unused) {
        premain(options, unused);
    }

    static void say(String text) {
        System.getLogger("io.github.unthrottle.agent").log(System.Logger.Level.WARNING, "unthrottle's agent: " + text);
    }

    static void start(String options, CpuBudget budget) {
        double tomcat = 0;
        Path threads = null;
        for (String option : options.split(",")) {
            String[] f = option.split("=", 2);
            if (f[0].equals("tomcat") && f.length == 2) {
                tomcat = threadsPerPermit(f[1]);
            } else if (f[0].equals("threads") && f.length == 2 && !f[1].isEmpty()) {
                threads = Path.of(f[1]);
            } else if (!option.isEmpty()) {
                throw new IllegalArgumentException("option " + option + ": there are tomcat=THREADS_PER_CPU and threads=FILE");
            }
        }
        int cpus = budget.allowedCpus();
        budget.follow(Pools.of("the common pool", ForkJoinPool.commonPool()), TaskClass.APP, 1,
                Math.max(ForkJoinPool.commonPool().getParallelism(), cpus - 1));
        if (Runtime.version().feature() >= 21) {
            budget.follow(Pools.virtualThreads(), TaskClass.APP, 1, Math.min(256, cpus));
        }
        budget.follow(Pools.collector(), TaskClass.APP, 1);
        if (tomcat > 0) {
            new JmxTomcats(ManagementFactory.getPlatformMBeanServer(), budget, tomcat).watch();
        }
        if (threads != null) {
            try {
                ThreadNames.write(threads, budget);
            } catch (IOException e) {
                say("threads=" + threads + ": " + e);
            }
        }
    }

    private static double threadsPerPermit(String text) {
        try {
            double n = Double.parseDouble(text);
            if (n > 0 && n <= 10_000) {
                return n;
            }
        } catch (NumberFormatException e) {
            // the message below says it
        }
        throw new IllegalArgumentException("option tomcat=" + text + ": it is the number of threads for each CPU of the limit, such as 8");
    }
}
