package io.github.unthrottle.bench;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.TaskClass;
import io.github.unthrottle.netty.BudgetEventExecutorGroup;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import io.netty.util.NettyRuntime;
import io.netty.util.concurrent.DefaultEventExecutorGroup;
import io.netty.util.concurrent.EventExecutorGroup;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/** A {@link Child} with Netty. */
public final class NettyService {
    private NettyService() {}

    /** Where the work of requests is done; null: on the event loop. */
    static EventExecutorGroup workers(String variant) {
        int threads = 2 * NettyRuntime.availableProcessors();
        return switch (variant) {
            case "inline" -> null;
            case "offloaded" -> new DefaultEventExecutorGroup(threads);
            case "budget" -> new BudgetEventExecutorGroup(CpuBudget.ofProcess(), TaskClass.APP, threads);
            default -> throw new IllegalArgumentException(variant + ": there are inline, offloaded and budget");
        };
    }

    /** The life of a service. */
    public static void main(String[] variant) throws Exception {
        Child.live(() -> (InetSocketAddress) serve(new NioEventLoopGroup(), workers(variant[0])).localAddress());
    }

    static Channel serve(EventLoopGroup loops, EventExecutorGroup workers) throws InterruptedException {
        return new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class).childHandler(new ChannelInitializer<Channel>() {
            @Override
            protected void initChannel(Channel c) {
                c.pipeline().addLast(new HttpServerCodec(), new HttpObjectAggregator(65536), new Pings());
                if (workers == null) {
                    c.pipeline().addLast(new Work());
                } else {
                    c.pipeline().addLast(workers, new Work());
                }
            }
        }).bind("127.0.0.1", 0).sync().channel();
    }

    private static void answer(ChannelHandlerContext context, HttpResponseStatus status, String text) {
        FullHttpResponse r = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, status, Unpooled.copiedBuffer(text, StandardCharsets.US_ASCII));
        r.headers().setInt(HttpHeaderNames.CONTENT_LENGTH, text.length());
        context.writeAndFlush(r);
    }

    private static final class Pings extends SimpleChannelInboundHandler<FullHttpRequest> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            if (request.uri().equals("/ping")) {
                answer(context, HttpResponseStatus.OK, "pong");
            } else {
                context.fireChannelRead(request.retain());
            }
        }
    }

    private static final class Work extends SimpleChannelInboundHandler<FullHttpRequest> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            if (Child.work(new QueryStringDecoder(request.uri()).parameters().get("cpu_us"))) {
                answer(context, HttpResponseStatus.OK, Thread.currentThread().getName());
            } else {
                answer(context, HttpResponseStatus.BAD_REQUEST, "cpu_us is a number of microseconds");
            }
        }
    }
}
