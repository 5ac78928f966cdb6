package io.github.unthrottle.grpc;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallExecutorSupplier;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Function;

/**
 * Answers gRPC calls within a CPU budget, and rejects early those that it would answer too late, with UNAVAILABLE, upon which clients try
 * elsewhere: {@code builder.callExecutor(calls).intercept(calls)}. Each callback of a call is a task: a stream that waits for a message
 * holds no permit.
 */
public final class BudgetCalls implements ServerCallExecutorSupplier, ServerInterceptor {
    private final CpuBudget budget;
    private final Executor threads;
    private final Function<String, TaskClass> classOf;
    private final Map<TaskClass, Duration> objective;
    private final Map<TaskClass, Executor> executors = new EnumMap<>(TaskClass.class);

    /**
     * Calls within a budget.
     *
     * @param threads run the callbacks, once they have a permit
     * @param classOf the class of a full method, such as grpc.health.v1.Health/Check
     * @param objective how long a call of a class may wait for its start; a class without one is never rejected
     */
    public BudgetCalls(CpuBudget budget, Executor threads, Function<String, TaskClass> classOf, Map<TaskClass, Duration> objective) {
        this.budget = budget;
        this.threads = threads;
        this.classOf = classOf;
        this.objective = Map.copyOf(objective);
        for (TaskClass c : TaskClass.values()) {
            executors.put(c, budget.executor(c, threads));
        }
    }

    /** Marks a call that comes too late. The decision is made before its task waits. A client that sends it rejects itself. */
    private static final Metadata.Key<String> LATE = Metadata.Key.of("unthrottle-late", Metadata.ASCII_STRING_MARSHALLER);

    @Override
    public <Q, A> Executor getExecutor(ServerCall<Q, A> call, Metadata headers) {
        TaskClass c = classOf.apply(call.getMethodDescriptor().getFullMethodName());
        Duration within = objective.get(c);
        if (within != null && budget.expectedNanos(c, 0) > within.toNanos()) {
            headers.put(LATE, "1");
            return threads;
        }
        return executors.get(c);
    }

    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        if (headers.containsKey(LATE)) {
            call.close(Status.UNAVAILABLE.withDescription("overloaded: the answer would come too late; try again"), new Metadata());
            return new ServerCall.Listener<>() {};
        }
        return next.startCall(call, headers);
    }
}
