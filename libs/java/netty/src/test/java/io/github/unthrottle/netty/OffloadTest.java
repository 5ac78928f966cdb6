package io.github.unthrottle.netty;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.Future;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class OffloadTest {
    private final FakeLimit limit = new FakeLimit(2.5); // 2 permits
    private final BudgetEventExecutorGroup group = new BudgetEventExecutorGroup(limit.budget, TaskClass.APP, 6);

    @AfterEach
    void end() throws InterruptedException {
        Future<?> ended = group.shutdownGracefully(0, 10, TimeUnit.SECONDS);
        ended.await();
        assertTrue(ended.isSuccess());
    }

    @Test
    void tasksRunWithinTheBudgetInTheOrderOfTheirChannel() throws Exception {
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        List<List<Integer>> orders = new ArrayList<>();
        CountDownLatch done = new CountDownLatch(12 * 200);
        for (int channel = 0; channel < 12; channel++) {
            EventExecutor executor = group.next();
            List<Integer> order = Collections.synchronizedList(new ArrayList<>());
            orders.add(order);
            boolean first = channel == 0;
            for (int i = 0; i < 200; i++) {
                int n = i;
                executor.execute(() -> {
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    assertTrue(executor.inEventLoop());
                    order.add(n);
                    running.decrementAndGet();
                    done.countDown();
                    if (first && n == 100) {
                        throw new IllegalStateException("of a handler: netty logs it, and goes on");
                    }
                });
            }
        }
        done.await();
        assertTrue(most.get() <= 2, most::toString);
        for (List<Integer> order : orders) {
            for (int i = 0; i < 200; i++) {
                assertEquals(i, order.get(i));
            }
        }
        assertEquals("on time", group.next().schedule(() -> "on time", 1, TimeUnit.MILLISECONDS).get());
    }

    @Test
    @SuppressWarnings("deprecation") // addLast with a group is deprecated since 4.2, which still has it, and nothing in its place
    void aHandlerOfTheGroupWorksOutsideTheEventLoop() throws Exception {
        CountDownLatch read = new CountDownLatch(1);
        List<Thread> threads = Collections.synchronizedList(new ArrayList<>());
        EmbeddedChannel channel = new EmbeddedChannel();
        channel.pipeline().addLast(group, new ChannelInboundHandlerAdapter() {
            @Override
            public void channelRead(ChannelHandlerContext context, Object message) {
                threads.add(Thread.currentThread());
                assertEquals(1, limit.budget.snapshot().of(TaskClass.APP).running());
                read.countDown();
            }
        });
        channel.writeInbound("work");
        read.await();
        assertTrue(threads.get(0).getName().startsWith("budget-app-"), threads::toString);
    }

    /** Makes four tasks wait that start every 10 ms at the pace of the last ones. */
    private ArrayDeque<Permit> overload() {
        ArrayDeque<Permit> permits = new ArrayDeque<>();
        for (int i = 0; i < 12; i++) {
            limit.budget.acquire(TaskClass.APP, null, permits::add, null);
        }
        for (int i = 0; i < 6; i++) {
            limit.pass(10_000_000);
            permits.poll().close();
        }
        assertEquals(4, limit.budget.snapshot().of(TaskClass.APP).waiting());
        return permits;
    }

    @Test
    void whatWouldWaitTooLongIsAnsweredAtOnceAndThenNoMore() throws Exception {
        EmbeddedChannel channel = new EmbeddedChannel(new ShedHandler(group, Duration.ofMillis(35), m -> "503"));
        channel.writeInbound("first");
        assertEquals("first", channel.readInbound());
        ArrayDeque<Permit> permits = overload();
        channel.writeInbound("second");
        assertNull(channel.readInbound());
        assertEquals("503", channel.readOutbound());
        ByteBuf counted = Unpooled.buffer();
        channel.writeInbound(counted);
        assertEquals(0, counted.refCnt());
        assertEquals("503", channel.readOutbound());
        EmbeddedChannel closed = new EmbeddedChannel(new ShedHandler(group, Duration.ofMillis(35), m -> null));
        closed.writeInbound("a message without an answer");
        assertFalse(closed.isOpen());
        while (!permits.isEmpty()) {
            permits.poll().close();
        }
        channel.writeInbound("third");
        assertEquals("third", channel.readInbound());
    }

    /** Tasks in the queues of the threads count too. */
    @Test
    void expectedCountsWhatThreadsHaveInTheirQueues() throws Exception {
        ArrayDeque<Permit> permits = overload();
        long before = group.expectedNanos();
        EventExecutor executor = group.next();
        executor.execute(() -> {});
        while (limit.budget.snapshot().of(TaskClass.APP).waiting() < 5) {
            Thread.onSpinWait();
        }
        executor.execute(() -> {});
        executor.execute(() -> {});
        assertEquals(before / 4 * 7, group.expectedNanos());
        while (!permits.isEmpty()) {
            permits.poll().close();
        }
    }
}
