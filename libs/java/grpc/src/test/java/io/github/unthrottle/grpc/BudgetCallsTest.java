package io.github.unthrottle.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.inprocess.InProcessChannelBuilder;
import io.grpc.inprocess.InProcessServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class BudgetCallsTest {
    @Test
    void callsRunWithinTheBudgetAndLateOnesAreRejected() throws Exception {
        FakeLimit limit = new FakeLimit(1); // 1 permit of APP
        ExecutorService threads = Executors.newCachedThreadPool();
        BudgetCalls calls = new BudgetCalls(limit.budget, threads, m -> m.equals("s/check") ? TaskClass.IO : TaskClass.APP,
                Map.of(TaskClass.APP, Duration.ofMillis(35), TaskClass.IO, Duration.ofMillis(1)));
        ServerServiceDefinition.Builder service = ServerServiceDefinition.builder("s");
        for (String name : new String[] {"work", "check"}) {
            TaskClass c = name.equals("work") ? TaskClass.APP : TaskClass.IO;
            service.addMethod(Texts.method(name), ServerCalls.asyncUnaryCall((String q, io.grpc.stub.StreamObserver<String> to) -> {
                to.onNext(q + " " + limit.budget.snapshot().of(c).running());
                to.onCompleted();
            }));
        }
        Server server = InProcessServerBuilder.forName("budget").executor(threads).callExecutor(calls).intercept(calls).addService(service.build())
                .build().start();
        ManagedChannel channel = InProcessChannelBuilder.forName("budget").build();
        try {
            assertEquals("a 1", call(channel, "work", "a"));
            // A call gives its permit back after its answer was sent: the first of these may come a little later.
            LinkedBlockingQueue<Permit> permits = new LinkedBlockingQueue<>();
            for (int i = 0; i < 12; i++) {
                limit.budget.acquire(TaskClass.APP, null, permits::add, null);
            }
            for (int i = 0; i < 4; i++) {
                Permit held = permits.take();
                limit.pass(10_000_000); // while it is held, or its task cost nothing
                held.close();
            }
            assertEquals("b 1", call(channel, "check", "b")); // IO never waits behind APP
            StatusRuntimeException late = assertThrows(StatusRuntimeException.class, () -> call(channel, "work", "c"));
            assertEquals(Status.Code.UNAVAILABLE, late.getStatus().getCode());
            for (int i = 4; i < 12; i++) {
                permits.take().close();
            }
            assertEquals("d 1", call(channel, "work", "d"));
        } finally {
            channel.shutdownNow();
            server.shutdownNow().awaitTermination(60, TimeUnit.SECONDS);
            threads.shutdown();
        }
    }

    private static String call(ManagedChannel channel, String method, String text) {
        return ClientCalls.blockingUnaryCall(channel, Texts.method(method), CallOptions.DEFAULT, text);
    }
}
