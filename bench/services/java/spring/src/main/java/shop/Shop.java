package shop;

import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A service of Spring Boot's usual kind: a controller whose answers become JSON, on Tomcat with its default of 200 threads. */
@SpringBootApplication
@RestController
public class Shop {
    record Order(String id, int item, double price) {}

    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }

    /** The dearest of 2,000 orders that it makes up. */
    @GetMapping("/orders")
    List<Order> orders() {
        Random of = new Random();
        return IntStream.range(0, 2000)
                .mapToObj(i -> new Order(Integer.toHexString(of.nextInt()), of.nextInt(1000), of.nextDouble()))
                .sorted(Comparator.comparingDouble(Order::price).reversed())
                .limit(100)
                .toList();
    }
}
