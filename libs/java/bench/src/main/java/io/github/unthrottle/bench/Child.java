package io.github.unthrottle.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;

/**
 * The life of a service of bench/threads: it waits for a line, serves until standard input ends, and says its address. /ping is answered
 * at once, /work?cpu_us=N after so much CPU time of its thread.
 */
final class Child {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private Child() {}

    /** Lives. Serve starts the service, and gives its address. */
    static void live(Callable<InetSocketAddress> serve) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        if (in.readLine() == null) {
            return;
        }
        InetSocketAddress at = serve.call();
        System.out.println(at.getAddress().getHostAddress() + ":" + at.getPort());
        while (in.readLine() != null) {
            // standard input ends when the service is no longer wanted
        }
        System.exit(0);
    }

    /**
     * Uses CPU time, as a request says.
     *
     * @param parameters the request's cpu_us, in microseconds
     * @return false: they say none
     */
    static boolean work(List<String> parameters) {
        long nanos;
        try {
            nanos = 1000 * Long.parseLong(parameters == null || parameters.isEmpty() ? "" : parameters.get(0));
        } catch (NumberFormatException e) {
            return false;
        }
        long end = THREADS.getCurrentThreadCpuTime() + nanos;
        while (THREADS.getCurrentThreadCpuTime() < end) {
            Thread.onSpinWait();
        }
        return true;
    }
}
