package io.github.unthrottle.servlet;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.LateException;
import io.github.unthrottle.budget.TaskClass;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;

/**
 * Answers requests of a servlet container, such as Tomcat, Jetty or Spring Boot's, within a CPU budget, and rejects early those that it
 * would answer too late: 503 and Retry-After. Both are cheap. As soon as fewer requests come than the budget carries, nothing is rejected:
 * there is no state to recover from.
 *
 * <p>Limits: a servlet that waits for a database does so in {@link CpuBudget#lend}, or holds its permit meanwhile. What an asynchronous
 * servlet does after it returned is not in the budget. A request that may not be tried again should not be rejected: give its class no
 * objective.
 */
public final class BudgetFilter implements Filter {
    private final CpuBudget budget;
    private final Function<HttpServletRequest, TaskClass> classOf;
    private final Map<TaskClass, Duration> objective;

    /**
     * Requests within a budget.
     *
     * @param objective how long a request of a class may wait for its start; a class without one is never rejected
     */
    public BudgetFilter(CpuBudget budget, Function<HttpServletRequest, TaskClass> classOf, Map<TaskClass, Duration> objective) {
        this.budget = budget;
        this.classOf = classOf;
        this.objective = Map.copyOf(objective);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        if (!(request instanceof HttpServletRequest http) || !(response instanceof HttpServletResponse answer)) {
            chain.doFilter(request, response);
            return;
        }
        TaskClass c = classOf.apply(http);
        Duration within = objective.get(c);
        Callable<Void> rest = () -> {
            chain.doFilter(request, response);
            return null;
        };
        try {
            if (within == null) {
                budget.call(c, rest);
            } else {
                budget.callWithin(c, within, rest);
            }
        } catch (LateException e) {
            answer.setHeader("Retry-After", "1");
            answer.sendError(HttpServletResponse.SC_SERVICE_UNAVAILABLE, "overloaded: the answer would come too late; try again");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            answer.sendError(HttpServletResponse.SC_SERVICE_UNAVAILABLE, "the server ends");
        } catch (IOException | ServletException | RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new ServletException(e);
        }
    }
}
