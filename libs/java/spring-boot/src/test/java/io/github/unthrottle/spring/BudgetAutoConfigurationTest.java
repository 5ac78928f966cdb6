package io.github.unthrottle.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.github.unthrottle.budget.CpuBudget;
import io.github.unthrottle.budget.FakeLimit;
import io.github.unthrottle.budget.Permit;
import io.github.unthrottle.budget.TaskClass;
import io.github.unthrottle.micrometer.BudgetMetrics;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@Timeout(120)
class BudgetAutoConfigurationTest {
    /** A program that only has the starter on its class path. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @RestController
    static class Program {
        private final CpuBudget budget;

        Program(CpuBudget budget) {
            this.budget = budget;
        }

        @GetMapping({"/", "/pingpong"})
        String work() {
            return "app " + budget.snapshot().of(TaskClass.APP).running();
        }

        @GetMapping("/ping/deep")
        String ping() {
            return "io " + budget.snapshot().of(TaskClass.IO).running();
        }
    }

    /** The same with a budget of its own. */
    @Configuration(proxyBeanMethods = false)
    static class Limited extends Program {
        static final FakeLimit LIMIT = new FakeLimit(1); // 1 permit of APP

        Limited() {
            super(LIMIT.budget);
        }

        @Bean
        static CpuBudget limitedBudget() {
            return LIMIT.budget;
        }
    }

    private static HttpResponse<String> get(ConfigurableApplicationContext program, String path) throws Exception {
        String port = program.getEnvironment().getProperty("local.server.port");
        return HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static ConfigurableApplicationContext run(Class<?> program, String... more) {
        List<String> args = new ArrayList<>(List.of("--server.port=0", "--server.address=127.0.0.1", "--unthrottle.objective=35ms",
                "--unthrottle.io-paths=/ping", "--logging.level.root=warn", "--spring.main.banner-mode=off"));
        args.addAll(List.of(more));
        return SpringApplication.run(program, args.toArray(String[]::new));
    }

    /** Paths are the program's own, wherever it is mounted, and no prefixes of names. */
    @Test
    void pathsAreBelowTheContext() throws Exception {
        try (ConfigurableApplicationContext program = run(Program.class, "--server.servlet.context-path=/shop")) {
            assertEquals("io 1", get(program, "/shop/ping/deep").body());
            assertEquals("io 1", get(program, "/shop/ping/deep;x=1").body());
            assertEquals("app 1", get(program, "/shop/pingpong").body());
        }
    }

    @Test
    void aRealProgramHasTheBudgetOfTheProcess() throws Exception {
        try (ConfigurableApplicationContext program = run(Program.class)) {
            assertSame(CpuBudget.ofProcess(), program.getBean(CpuBudget.class));
            assertEquals("app 1", get(program, "/").body());
            assertEquals("io 1", get(program, "/ping/deep").body());
            assertNotNull(program.getBean(BudgetMetrics.class));
        }
    }

    @Test
    void whatIsLateIsRejected() throws Exception {
        try (ConfigurableApplicationContext program = run(Limited.class)) {
            ArrayDeque<Permit> permits = new ArrayDeque<>();
            for (int i = 0; i < 12; i++) {
                Limited.LIMIT.budget.acquire(TaskClass.APP, null, permits::add, null);
            }
            for (int i = 0; i < 4; i++) {
                Limited.LIMIT.pass(10_000_000);
                permits.poll().close();
            }
            assertEquals(503, get(program, "/").statusCode());
            assertEquals("io 1", get(program, "/ping/deep").body());
            while (!permits.isEmpty()) {
                permits.poll().close();
            }
            assertEquals("app 1", get(program, "/").body());
        }
    }
}
