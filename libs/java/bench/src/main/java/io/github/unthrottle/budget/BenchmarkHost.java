package io.github.unthrottle.budget;

import java.io.IOException;

/** This machine, with a limit of 79 of 80 CPUs: it is in force and paced, and never used up. */
final class BenchmarkHost implements Host {
    private static final long PERIOD = 100_000_000;

    private final ThisHost real = new ThisHost();

    static CpuBudget budget() {
        return new CpuBudget(CpuBudget.Options.DEFAULT, new BenchmarkHost());
    }

    @Override
    public String read(String name) throws IOException {
        return switch (name) {
            case "/proc/self/cgroup" -> "0::/\n";
            case "/proc/self/mountinfo" -> "30 29 0:26 / /c rw - cgroup2 cgroup2 rw\n";
            case "/proc/self/status" -> "Cpus_allowed_list:\t0-79\n";
            case "/c/cpu.max" -> "7900000 100000\n";
            case "/c/cpu.stat" -> "usage_usec " + processCpuNanos() / 1000 + "\nnr_periods " + nanos() / PERIOD + "\n";
            default -> throw new java.nio.file.NoSuchFileException(name);
        };
    }

    /** Reads a file of the kernel, as the budget does; the text is another. */
    @Override
    public Reading open(String name) throws IOException {
        Reading file = real.open("/proc/self/stat");
        return new Reading() {
            @Override
            public int read(byte[] into) throws IOException {
                file.read(into);
                byte[] text = USAGE;
                System.arraycopy(text, 0, into, 0, text.length);
                return text.length;
            }

            @Override
            public void close() throws IOException {
                file.close();
            }
        };
    }

    private static final byte[] USAGE = "usage_usec 1\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII);

    @Override
    public long nanos() {
        return real.nanos();
    }

    @Override
    public long processCpuNanos() {
        return real.processCpuNanos();
    }

    @Override
    public void sleep(long nanos) throws InterruptedException {
        real.sleep(nanos);
    }

    @Override
    public Alarm alarm(Runnable task) {
        return real.alarm(task);
    }
}
