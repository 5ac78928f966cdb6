package io.github.unthrottle.servlet;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Map;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class BudgetFilterTest {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    private static HttpResponse<String> get(int port, String path) throws Exception {
        return CLIENT.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(), HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void aRealTomcatAnswersWithinTheBudgetAndRejectsWhatIsLate(@TempDir Path folder) throws Exception {
        FakeLimit limit = new FakeLimit(1); // 1 permit of APP
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", folder.toString());
        FilterDef filter = new FilterDef();
        filter.setFilterName("budget");
        filter.setFilter(new BudgetFilter(limit.budget, r -> r.getRequestURI().equals("/health") ? TaskClass.IO : TaskClass.APP,
                Map.of(TaskClass.APP, Duration.ofMillis(35))));
        context.addFilterDef(filter);
        FilterMap all = new FilterMap();
        all.setFilterName("budget");
        all.addURLPattern("/*");
        context.addFilterMap(all);
        Tomcat.addServlet(context, "work", new HttpServlet() {
            private static final long serialVersionUID = 1;

            @Override
            protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
                if (request.getRequestURI().equals("/fails")) {
                    throw new IOException("of the servlet");
                }
                TaskClass c = request.getRequestURI().equals("/health") ? TaskClass.IO : TaskClass.APP;
                response.getWriter().print(c.label() + " " + limit.budget.snapshot().of(c).running());
            }
        }).addMapping("/");
        tomcat.start();
        int port = tomcat.getConnector().getLocalPort();
        assertEquals("app 1", get(port, "/").body());
        assertEquals(500, get(port, "/fails").statusCode());
        ArrayDeque<Permit> permits = new ArrayDeque<>();
        for (int i = 0; i < 12; i++) {
            limit.budget.acquire(TaskClass.APP, null, permits::add, null);
        }
        for (int i = 0; i < 4; i++) {
            limit.pass(10_000_000);
            permits.poll().close();
        }
        HttpResponse<String> late = get(port, "/");
        assertEquals(503, late.statusCode());
        assertEquals("1", late.headers().firstValue("Retry-After").orElse(""));
        assertEquals("io 1", get(port, "/health").body()); // IO never waits behind APP
        while (!permits.isEmpty()) {
            permits.poll().close();
        }
        assertEquals("app 1", get(port, "/").body());
        assertEquals(0, limit.budget.snapshot().of(TaskClass.APP).running());
        tomcat.stop();
        tomcat.destroy();
    }
}
