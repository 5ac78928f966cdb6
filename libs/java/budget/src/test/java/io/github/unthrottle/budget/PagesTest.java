package io.github.unthrottle.budget;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The program that the page shows is compiled, and answers a request. */
class PagesTest {
    private static final Pattern PROGRAM = Pattern.compile("```java\n(.*?public class (\\w+) .*?)```", Pattern.DOTALL);

    @Test
    void theProgramOfThePageRuns(@TempDir Path folder) throws Exception {
        Matcher m = PROGRAM.matcher(Files.readString(Path.of("../../../docs/howto/in-your-jvm-code.md")));
        int n = 0;
        for (; m.find(); n++) {
            run(folder, m.group(2), m.group(1));
        }
        assertEquals(1, n, "programs that the page shows");
    }

    private static void run(Path folder, String name, String text) throws Exception {
        Path source = folder.resolve(name + ".java");
        Files.writeString(source, text);
        String classes = Path.of("target/classes").toAbsolutePath() + File.pathSeparator + folder;
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, "-cp", classes, "-d", folder.toString(), source.toString()));
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-Xmx64m", "-Dport=" + port, "-cp", classes, name));
        Process program = new ProcessBuilder(command).inheritIO().start();
        try {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/")).timeout(Duration.ofMinutes(1)).build();
            for (int tries = 0; ; tries++) {
                assertTrue(program.isAlive(), name + " ended");
                try {
                    HttpResponse<String> r = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
                    assertEquals("200 hello", r.statusCode() + " " + r.body());
                    return;
                } catch (IOException e) {
                    if (tries > 600) {
                        throw e;
                    }
                    Thread.sleep(100);
                }
            }
        } finally {
            program.destroy();
            program.waitFor();
        }
    }
}
