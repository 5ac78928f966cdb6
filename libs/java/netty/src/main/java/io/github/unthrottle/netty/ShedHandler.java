package io.github.unthrottle.netty;

import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.ReferenceCountUtil;
import java.time.Duration;
import java.util.function.Function;

/**
 * Answers on the event loop what would wait in a group for longer than its objective. It stands before the handlers of that group, and
 * where a message is a whole request: for HTTP, after HttpObjectAggregator. A client that sends a request before it has the last one's
 * answer would take this answer for that of the last one.
 */
@ChannelHandler.Sharable
public final class ShedHandler extends ChannelInboundHandlerAdapter {
    private final BudgetEventExecutorGroup group;
    private final long objectiveNanos;
    private final Function<Object, Object> late;

    /** Answers late messages with what a function makes of them, such as a 503; a null answer closes the channel. */
    public ShedHandler(BudgetEventExecutorGroup group, Duration objective, Function<Object, Object> late) {
        this.group = group;
        this.objectiveNanos = objective.toNanos();
        this.late = late;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (group.expectedNanos() <= objectiveNanos) {
            context.fireChannelRead(message);
            return;
        }
        Object answer;
        try {
            answer = late.apply(message);
        } finally {
            ReferenceCountUtil.release(message);
        }
        if (answer == null) {
            context.close();
        } else {
            context.writeAndFlush(answer);
        }
    }
}
