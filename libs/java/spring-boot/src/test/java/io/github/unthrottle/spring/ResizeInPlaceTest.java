package io.github.unthrottle.spring;

import io.github.unthrottle.budget.AtOnce;
import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.RealLimit;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A Spring Boot program in a cgroup of this kernel, whose limit changes while it works: requests that run at once follow it. */
class ResizeInPlaceTest {
    @Test
    void requestsFollowALimitThatChanges() throws Exception {
        AtOnce.follow(Program.class);
    }

    /** The program of the test, which only has the starter on its class path. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @RestController
    static class Program {
        private static final AtOnce CALLS = new AtOnce();

        @GetMapping("/")
        String work() {
            CALLS.here();
            return "done";
        }

        public static void main(String[] args) throws Exception {
            ConfigurableApplicationContext program = SpringApplication.run(Program.class, "--server.port=0", "--server.address=127.0.0.1",
                    "--logging.level.root=warn", "--spring.main.banner-mode=off");
            HttpRequest ask = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + program.getEnvironment().getProperty("local.server.port"))).build();
            HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
            RealLimit.change(program.getBean(CpuBudget.class), args[0], () -> true,
                    () -> CALLS.of(() -> client.sendAsync(ask, HttpResponse.BodyHandlers.ofString())));
            System.exit(0);
        }
    }
}
