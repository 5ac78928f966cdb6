package io.github.unthrottle.grpc;

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
import java.util.Map;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Test;

/** A gRPC server in a cgroup of this kernel, whose limit changes while it works: calls that run at once follow it. */
class ResizeInPlaceTest {
    @Test
    void callsFollowALimitThatChanges() throws Exception {
        AtOnce.follow(Program.class);
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
                    () -> calls.of(() -> ClientCalls.futureUnaryCall(channel.newCall(Texts.method("work"), CallOptions.DEFAULT), "")));
            System.exit(0);
        }
    }
}
