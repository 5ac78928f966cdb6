package io.github.unthrottle.spring;

import java.time.Duration;
import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Properties of the budget.
 *
 * @param objective how long a request may wait for its start; null: none is rejected
 * @param ioPaths beginnings of paths whose requests are of class IO
 */
@ConfigurationProperties("unthrottle")
public record BudgetProperties(Duration objective, @DefaultValue("/actuator/health") List<String> ioPaths) {}
