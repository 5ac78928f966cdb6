package io.github.unthrottle.spring;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import io.github.unthrottle.micrometer.BudgetMetrics;
import io.github.unthrottle.servlet.BudgetFilter;
import io.micrometer.core.instrument.binder.MeterBinder;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import java.util.Map;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;

/** The budget of the process as a bean, every servlet request within it, and its gauges where micrometer is. */
@AutoConfiguration
@EnableConfigurationProperties(BudgetProperties.class)
public class BudgetAutoConfiguration {
    /** The budget of the process. */
    @Bean
    @ConditionalOnMissingBean
    public CpuBudget cpuBudget() {
        return CpuBudget.ofProcess();
    }

    /** Requests of servlets. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(Filter.class)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class Requests {
        /** Stands before the other filters, whose work is of the request too. */
        @Bean
        @ConditionalOnMissingBean
        @Order(Ordered.HIGHEST_PRECEDENCE + 10)
        BudgetFilter budgetFilter(CpuBudget budget, BudgetProperties properties) {
            return new BudgetFilter(budget,
                    r -> properties.ioPaths().stream().anyMatch(path -> isBelow(r, path)) ? TaskClass.IO : TaskClass.APP,
                    properties.objective() == null ? Map.of() : Map.of(TaskClass.APP, properties.objective()));
        }

        /** Whether a request is for a path of the application, or for one below it. */
        private static boolean isBelow(HttpServletRequest r, String path) {
            // What the container made of it: decoded, without parameters and "..", so that a client cannot choose its class.
            String asked = r.getServletPath() + (r.getPathInfo() == null ? "" : r.getPathInfo());
            return asked.equals(path) || asked.startsWith(path.endsWith("/") ? path : path + "/");
        }
    }

    /** Gauges. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({MeterBinder.class, BudgetMetrics.class})
    static class Gauges {
        @Bean
        @ConditionalOnMissingBean
        BudgetMetrics budgetMetrics(CpuBudget budget) {
            return new BudgetMetrics(budget);
        }
    }
}
