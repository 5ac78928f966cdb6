package io.github.unthrottle.agent;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.Pool;
import io.github.unthrottle.budget.TaskClass;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MBeanServerDelegate;
import javax.management.MBeanServerNotification;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.relation.MBeanServerNotificationFilter;

/** Tomcat's pools as JMX shows them: Catalina:type=ThreadPool,name="http-nio-8080". Each follows the limit while it is registered. */
final class JmxTomcats {
    private final MBeanServer server;
    private final CpuBudget budget;
    private final double threadsPerPermit;
    private final ObjectName pattern;
    private final Map<ObjectName, CpuBudget.Following> followed = new ConcurrentHashMap<>();

    JmxTomcats(MBeanServer server, CpuBudget budget, double threadsPerPermit) {
        this.server = server;
        this.budget = budget;
        this.threadsPerPermit = threadsPerPermit;
        try {
            pattern = new ObjectName("*:type=ThreadPool,name=*");
        } catch (MalformedObjectNameException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Follows those that are there, and those that come. */
    void watch() {
        MBeanServerNotificationFilter all = new MBeanServerNotificationFilter();
        all.enableAllObjectNames();
        try {
            server.addNotificationListener(MBeanServerDelegate.DELEGATE_NAME, (n, unused) -> {
                if (n instanceof MBeanServerNotification m && pattern.apply(m.getMBeanName())) {
                    if (m.getType().equals(MBeanServerNotification.REGISTRATION_NOTIFICATION)) {
                        follow(m.getMBeanName());
                    } else {
                        CpuBudget.Following f = followed.remove(m.getMBeanName());
                        if (f != null) {
                            f.close();
                        }
                    }
                }
            }, all, null);
        } catch (JMException e) {
            throw new IllegalStateException(e);
        }
        server.queryNames(pattern, null).forEach(this::follow);
    }

    private void follow(ObjectName name) {
        try {
            int now = (Integer) server.getAttribute(name, "maxThreads");
            int spare = (Integer) server.getAttribute(name, "minSpareThreads");
            if (now > 0) {
                followed.computeIfAbsent(name, n -> budget.follow(new Tomcat(n, now, spare), TaskClass.APP, threadsPerPermit, now));
            }
        } catch (JMException | ClassCastException e) {
            Agent.say(name + " is no pool of Tomcat's, and is left alone: " + e.getMessage());
        }
    }

    /** Sets maxThreads, and the threads that are kept idle: as many as before it was followed, and not more than maxThreads. */
    private final class Tomcat implements Pool {
        private final ObjectName bean;
        private final int minSpare;
        private volatile int size;

        Tomcat(ObjectName bean, int size, int minSpare) {
            this.bean = bean;
            this.size = size;
            this.minSpare = minSpare;
        }

        @Override
        public String name() {
            return "Tomcat " + bean.getKeyProperty("name");
        }

        @Override
        public int size() {
            return size;
        }

        @Override
        public void resize(int threads) {
            try {
                Attribute most = new Attribute("maxThreads", threads);
                Attribute spare = new Attribute("minSpareThreads", Math.min(minSpare, threads));
                for (Attribute a : threads < size ? List.of(spare, most) : List.of(most, spare)) {
                    server.setAttribute(bean, a);
                }
                size = threads;
            } catch (JMException e) {
                throw new IllegalStateException(name() + ": " + e.getMessage(), e);
            }
        }
    }
}
