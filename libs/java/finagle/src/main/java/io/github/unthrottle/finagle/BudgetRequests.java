package io.github.unthrottle.finagle;

import com.twitter.finagle.Failure;
import com.twitter.finagle.Service;
import com.twitter.finagle.SimpleFilter;
import com.twitter.util.Future;
import com.twitter.util.Local;
import com.twitter.util.Promise;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;

/**
 * Answers requests within a CPU budget, each in its class: {@code new BudgetRequests<>(budget, threads, classOf, objective).andThen(service)}.
 * Those of class IO are answered where they come, on the event loop; others on threads of their own, once there is a permit. What would
 * come too late is rejected as Finagle does, upon which clients try elsewhere.
 *
 * <p>Finagle's Offload Filter sees no request, so all have one class there, short ones behind long ones: leave it off beside this filter.
 */
public final class BudgetRequests<Q, A> extends SimpleFilter<Q, A> {
    private final CpuBudget budget;
    private final Function<Q, TaskClass> classOf;
    private final Map<TaskClass, Duration> objective;
    private final Map<TaskClass, Executor> executors = new EnumMap<>(TaskClass.class);

    /**
     * Requests within a budget.
     *
     * @param threads run the work, once it has a permit
     * @param classOf the class of a request
     * @param objective how long a request of a class may wait for its start; a class without one is never rejected
     */
    public BudgetRequests(CpuBudget budget, Executor threads, Function<Q, TaskClass> classOf, Map<TaskClass, Duration> objective) {
        this.budget = budget;
        this.classOf = classOf;
        this.objective = Map.copyOf(objective);
        for (TaskClass c : TaskClass.values()) {
            executors.put(c, budget.executor(c, threads));
        }
    }

    @Override
    public Future<A> apply(Q request, Service<Q, A> service) {
        TaskClass c = classOf.apply(request);
        if (c == TaskClass.IO) {
            return service.apply(request);
        }
        Duration within = objective.get(c);
        if (within != null && budget.expectedNanos(c, 0) > within.toNanos()) {
            return Future.exception(Failure.rejected("overloaded: the answer would come too late; try again"));
        }
        Promise<A> answer = new Promise<>();
        Local.Context of = Local.save(); // the trace, the deadline and so on of this request
        try {
            executors.get(c).execute(() -> {
                Local.Context before = Local.save();
                Local.restore(of);
                try {
                    answer.become(service.apply(request));
                } catch (Throwable e) { // also what is checked, which Scala throws anywhere
                    answer.setException(e);
                } finally {
                    Local.restore(before);
                }
            });
        } catch (RejectedExecutionException e) {
            return Future.exception(Failure.rejected("overloaded: its threads take no more work; try again"));
        }
        return answer;
    }
}
