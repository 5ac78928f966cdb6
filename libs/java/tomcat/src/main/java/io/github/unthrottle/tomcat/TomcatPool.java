package io.github.unthrottle.tomcat;

import io.github.unthrottle.budget.Pool;
import java.util.concurrent.Executor;
import org.apache.catalina.connector.Connector;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;

/** The threads of a Tomcat connector: http-nio-8080-exec-1 and so on. They follow the limit while Tomcat works. */
public final class TomcatPool implements Pool {
    private final AbstractProtocol<?> protocol;
    private final int minSpare;

    /** The pool of a connector. */
    public TomcatPool(Connector connector) {
        if (!(connector.getProtocolHandler() instanceof AbstractProtocol<?> p)) {
            throw new IllegalArgumentException(connector + " has the protocol " + connector.getProtocol() + ", which has no pool of Tomcat's");
        }
        protocol = p;
        minSpare = p.getMinSpareThreads();
    }

    @Override
    public String name() {
        return "Tomcat " + protocol.getName();
    }

    /** maxThreads; 1 where the requests run elsewhere. */
    @Override
    public int size() {
        return Math.max(1, protocol.getMaxThreads());
    }

    @Override
    public void resize(int threads) {
        Executor executor = protocol.getExecutor();
        if (protocol.getMaxThreads() < 0 || executor != null && !(executor instanceof ThreadPoolExecutor)) {
            throw new UnsupportedOperationException(
                    "an Executor of its own runs its requests: follow that one; for virtual threads, Pools.virtualThreads");
        }
        int spare = Math.min(minSpare, threads);
        if (threads < protocol.getMaxThreads()) {
            protocol.setMinSpareThreads(spare);
            protocol.setMaxThreads(threads);
        } else {
            protocol.setMaxThreads(threads);
            protocol.setMinSpareThreads(spare);
        }
    }
}
