package io.github.unthrottle.budget;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.management.ManagementFactory;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import javax.management.Attribute;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;

/** The pools of the JDK, for {@link CpuBudget#follow}. */
public final class Pools {
    private Pools() {}

    /**
     * An executor with a queue. Its threads end as they finish their tasks. One whose queue holds no task, as that of
     * newCachedThreadPool, would reject what it cannot start, and is left alone.
     */
    public static Pool of(String name, ThreadPoolExecutor executor) {
        int core = executor.getCorePoolSize();
        boolean unbounded = executor instanceof ScheduledThreadPoolExecutor; // its queue never fills, so that core is its size
        boolean fixed = core == executor.getMaximumPoolSize();
        return new Pool() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public int size() {
                return unbounded ? executor.getCorePoolSize() : executor.getMaximumPoolSize();
            }

            @Override
            public void resize(int threads) {
                if (unbounded) {
                    executor.setCorePoolSize(threads);
                    return;
                }
                if (executor.getQueue().remainingCapacity() == 0 && executor.getQueue().isEmpty()) {
                    throw new UnsupportedOperationException(
                            "its queue holds no task, so that fewer threads would reject work; give its tasks to CpuBudget.executor");
                }
                int newCore = fixed ? threads : Math.min(core, threads);
                if (threads < executor.getMaximumPoolSize()) {
                    executor.setCorePoolSize(newCore);
                    executor.setMaximumPoolSize(threads);
                } else {
                    executor.setMaximumPoolSize(threads);
                    executor.setCorePoolSize(newCore);
                }
            }
        };
    }

    /** ForkJoinPool.setParallelism of Java 19 and newer; null: it is not there. */
    private static final MethodHandle SET_PARALLELISM = setParallelism();

    private static MethodHandle setParallelism() {
        try {
            return MethodHandles.publicLookup().findVirtual(ForkJoinPool.class, "setParallelism", MethodType.methodType(int.class, int.class));
        } catch (NoSuchMethodException | IllegalAccessException e) {
            return null;
        }
    }

    /** A ForkJoinPool, such as {@link ForkJoinPool#commonPool}. It can be resized on Java 19 and newer. */
    public static Pool of(String name, ForkJoinPool pool) {
        return new Pool() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public int size() {
                return pool.getParallelism();
            }

            @Override
            public void resize(int threads) {
                if (SET_PARALLELISM == null) {
                    throw new UnsupportedOperationException("Java " + Runtime.version().feature() + " takes the size of a ForkJoinPool at its start; "
                            + (pool == ForkJoinPool.commonPool()
                                    ? "restart with -Djava.util.concurrent.ForkJoinPool.common.parallelism=" + threads
                                    : "make it with a parallelism of " + threads));
                }
                try {
                    int unused = (int) SET_PARALLELISM.invokeExact(pool, threads);
                } catch (RuntimeException | Error e) {
                    throw e;
                } catch (Throwable e) {
                    throw new IllegalStateException(e);
                }
            }
        };
    }

    /** The carriers of virtual threads. They can be resized on Java 24 and newer. */
    public static Pool virtualThreads() {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        return new Pool() {
            @Override
            public String name() {
                return "carriers of virtual threads";
            }

            @Override
            public int size() {
                try {
                    return (Integer) server.getAttribute(new ObjectName("jdk.management:type=VirtualThreadScheduler"), "Parallelism");
                } catch (JMException e) {
                    return Integer.getInteger("jdk.virtualThreadScheduler.parallelism", Runtime.getRuntime().availableProcessors());
                }
            }

            @Override
            public void resize(int threads) {
                int version = Runtime.version().feature();
                if (version < 21) {
                    throw new UnsupportedOperationException("Java " + version + " has no virtual threads");
                }
                try {
                    server.setAttribute(new ObjectName("jdk.management:type=VirtualThreadScheduler"), new Attribute("Parallelism", threads));
                } catch (InstanceNotFoundException e) {
                    throw new UnsupportedOperationException("Java " + version
                            + " takes their number at the start; restart with -Djdk.virtualThreadScheduler.parallelism=" + threads);
                } catch (JMException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
    }

    /** The threads with which the collector works in pauses. They cannot be resized: a limit that they do not fit is said. */
    public static Pool collector() {
        return new Pool() {
            @Override
            public String name() {
                return "the collector";
            }

            /** 1 where the JVM does not say it, so that nothing is said of it. */
            @Override
            public int size() {
                try {
                    Object flag = ManagementFactory.getPlatformMBeanServer().invoke(
                            new ObjectName("com.sun.management:type=HotSpotDiagnostic"), "getVMOption",
                            new Object[] {"ParallelGCThreads"}, new String[] {String.class.getName()});
                    return Math.max(1, Integer.parseInt((String) ((CompositeData) flag).get("value")));
                } catch (JMException | RuntimeException e) {
                    return 1;
                }
            }

            @Override
            public void resize(int threads) {
                throw new UnsupportedOperationException(
                        "the JVM takes their number at its start; restart with -XX:ParallelGCThreads=" + threads);
            }
        };
    }
}
