import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.stream.IntStream;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.handler.AbstractHandler;

/** Jetty: /report sums up orders with a parallel stream, all else is a small page. */
public class Reports extends AbstractHandler {
    static final String PAGE = "hello\n".repeat(20);

    /** What one order is worth after interest over months. */
    static double worth(int order) {
        double cents = order % 997 + 100;
        for (int month = 1; month <= 40; month++) {
            cents += cents * Math.sqrt(month + order % 13) / 1000;
        }
        return Math.floor(cents);
    }

    @Override
    public void handle(String path, Request base, HttpServletRequest request, HttpServletResponse response) throws IOException {
        String body = PAGE;
        if (path.equals("/report")) {
            body = "total " + IntStream.range(0, 300_000).parallel().mapToDouble(Reports::worth).sum() + "\n";
        }
        response.setContentType("text/plain");
        response.getWriter().write(body);
        base.setHandled(true);
    }

    public static void main(String[] args) throws Exception {
        var server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
        server.setHandler(new Reports());
        server.start();
    }
}
