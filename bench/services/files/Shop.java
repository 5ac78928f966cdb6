import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Executors;

/** A server whose requests build pages from many short-lived objects and keep some in sessions. */
public class Shop {
    static final ConcurrentLinkedDeque<Map<String, String>> sessions = new ConcurrentLinkedDeque<>();

    static String page(int seed) {
        var items = new ArrayList<String>();
        var session = new HashMap<String, String>();
        for (int i = 0; i < 12000; i++) {
            String item = "item " + (seed * 31 + i) + " costs " + (i % 97);
            items.add(item);
            if (i % 16 == 0) {
                session.put(item, item + " in the basket");
            }
        }
        sessions.add(session);
        if (sessions.size() > 1000) {
            sessions.poll();
        }
        items.sort(String::compareTo);
        return String.join("\n", items.subList(0, 50));
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 200);
        server.createContext("/", exchange -> {
            byte[] body = page((int) System.nanoTime()).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
