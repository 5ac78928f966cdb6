package io.github.unthrottle.grpc;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.unthrottle.budget.AtOnce;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.RealLimit;
import io.github.unthrottle.budget.TaskClass;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

/** A gRPC server in a cgroup of this kernel, whose limit changes while it works: calls that run at once follow it. */
class ResizeInPlaceTest {
    private static final int CALLS = 12;

    @Test
    void callsFollowALimitThatChanges() throws Exception {
        boolean wide = Runtime.getRuntime().availableProcessors() > 4; // else 4 CPUs are no limit
        List<String> lines = RealLimit.run(Program.class);
        assertEquals(List.of("0.5: 1 at once", "1.5: 2 at once", "4.0: " + (wide ? 4 : CALLS) + " at once", "0.5: 1 at once"),
                RealLimit.sizes(lines), lines::toString);
    }

    /** The program of the test. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            CpuBudget budget = CpuBudget.ofProcess();
            AtOnce calls = new AtOnce();
            BudgetCalls within = new BudgetCalls(budget, Executors.newCachedThreadPool(), m -> TaskClass.APP, Map.of());
            ServerServiceDefinition service = ServerServiceDefinition.builder("s")
                    .addMethod(Texts.method("work"), ServerCalls.asyncUnaryCall((String q, StreamObserver<String> to) -> {
                        calls.here();
                        to.onNext(q);
                        to.onCompleted();
                    })).build();
            Server server = NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0)).callExecutor(within)
                    .intercept(within).addService(service).build().start();
            ManagedChannel channel = NettyChannelBuilder.forAddress(server.getListenSockets().get(0)).usePlaintext().build();
            RealLimit.change(budget, args[0], () -> true,
                    () -> calls.of(CALLS, () -> ClientCalls.futureUnaryCall(channel.newCall(Texts.method("work"), CallOptions.DEFAULT), "")));
            System.exit(0);
        }
    }
}
