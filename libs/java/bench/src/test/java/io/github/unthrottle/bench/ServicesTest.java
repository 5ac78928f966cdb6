package io.github.unthrottle.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.twitter.finagle.ListeningServer;
import com.twitter.util.Await;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.util.concurrent.EventExecutorGroup;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ServicesTest {
    /** Over a real socket, each variant does its work where it says, and answers pings. */
    @Test
    void eachVariantOfNettyAnswers() throws Exception {
        for (Map.Entry<String, String> v : Map.of("inline", "nioEventLoopGroup-", "offloaded", "defaultEventExecutorGroup-", "budget", "budget-app-")
                .entrySet()) {
            EventLoopGroup loops = new NioEventLoopGroup(2);
            EventExecutorGroup workers = NettyService.workers(v.getKey());
            int port = ((InetSocketAddress) NettyService.serve(loops, workers).localAddress()).getPort();
            for (int i = 0; i < 3; i++) {
                assertEquals("pong", get(port, "/ping").body());
                String thread = get(port, "/work?cpu_us=100").body();
                assertTrue(thread.startsWith(v.getValue()), thread);
            }
            assertEquals(400, get(port, "/work?cpu_us=much").statusCode());
            loops.shutdownGracefully();
            if (workers != null) {
                workers.shutdownGracefully();
            }
        }
        assertThrows(IllegalArgumentException.class, () -> NettyService.workers("fast"));
    }

    @Test
    void eachVariantOfFinagleAnswers() throws Exception {
        for (Map.Entry<String, String> v : Map.of("inline", "finagle/netty4", "budget", "budget-app").entrySet()) {
            ListeningServer server = FinagleService.serve(FinagleService.service(v.getKey()));
            int port = ((InetSocketAddress) server.boundAddress()).getPort();
            assertEquals("pong", get(port, "/ping").body());
            String thread = get(port, "/work?cpu_us=100").body();
            assertTrue(thread.startsWith(v.getValue()), thread);
            assertEquals(400, get(port, "/work?cpu_us=much").statusCode());
            Await.result(server.close());
        }
        assertThrows(IllegalArgumentException.class, () -> FinagleService.service("fast"));
    }

    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    private static HttpResponse<String> get(int port, String path) throws Exception {
        return CLIENT.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(), HttpResponse.BodyHandlers.ofString());
    }
}
