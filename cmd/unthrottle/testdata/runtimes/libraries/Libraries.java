import com.twitter.finagle.netty4.WorkerEventLoop;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.util.concurrent.MultithreadEventExecutorGroup;
import java.util.Arrays;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.tomcat.TomcatWebServer;
import org.springframework.boot.web.server.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Configuration;

/** Says what this JVM and its libraries decided: the sizes of the pools that they made. It waits for the end of its input. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class Libraries {
    public static void main(String[] args) throws Exception {
        StringBuilder line = Figures.line();
        if (args.length > 0 && args[0].equals("tomcat")) {
            String[] own = Arrays.copyOfRange(args, 1, args.length);
            SpringApplication program = new SpringApplication(Libraries.class);
            program.setWebApplicationType(WebApplicationType.SERVLET);
            program.setDefaultProperties(java.util.Map.of("server.port", "0", "server.address", "127.0.0.1", "logging.level.root", "off",
                    "spring.main.banner-mode", "off"));
            TomcatWebServer server = (TomcatWebServer) ((ServletWebServerApplicationContext) program.run(own)).getWebServer();
            ThreadPoolExecutor threads = (ThreadPoolExecutor) server.getTomcat().getConnector().getProtocolHandler().getExecutor();
            line.append(" tomcat_threads=").append(threads.getMaximumPoolSize());
        } else {
            new com.twitter.app.Flags("libraries", true).parseArgs(args, true); // as a server of Finagle does
            line.append(" netty_threads=").append(new NioEventLoopGroup().executorCount());
            line.append(" finagle_threads=").append(((MultithreadEventExecutorGroup) WorkerEventLoop.Global()).executorCount());
        }
        System.out.println(line);
        System.in.read();
        System.exit(0);
    }
}
