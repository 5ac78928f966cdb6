import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.ForkJoinPool;

/** Says what this JVM decided, by its own flags, and waits for the end of its input. */
public class Figures {
    public static void main(String[] args) throws Exception {
        System.out.println(line());
        System.in.read();
    }

    static StringBuilder line() {
        HotSpotDiagnosticMXBean flags = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        StringBuilder line = new StringBuilder();
        line.append("processors=").append(Runtime.getRuntime().availableProcessors());
        line.append(" compiler_threads=").append(flags.getVMOption("CICompilerCount").getValue());
        line.append(" common_pool=").append(ForkJoinPool.getCommonPoolParallelism());
        boolean serial = Boolean.parseBoolean(flags.getVMOption("UseSerialGC").getValue());
        line.append(" gc_threads=").append(serial ? "1" : flags.getVMOption("ParallelGCThreads").getValue());
        if (!serial) {
            line.append(" concurrent_gc_threads=").append(flags.getVMOption("ConcGCThreads").getValue());
        }
        return line;
    }
}
