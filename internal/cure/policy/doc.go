// Package policy decides which remedy fits which container, and says why not the others. It also reads the agent's rules
// file (Rules v1) and the user's objectives.
//
// # The rule
//
// Time counts, not periods: a container is a finding when it may be stopped for more than a bound (1 % of the time by
// default). So is one whose few stops make its slowest requests ([SlowsRequests]). Then the forecast of a recording
// decides: [Choose] takes the row with the lowest latency of the pool that
// suffers among those that grant no more CPU than the limit, or the cheapest that keeps an objective. explain, forecast, fix
// and the agent share it. The container's own past outcomes move the forecast ([Corrections]). Where nothing was forecast,
// counters order the remedies, and the reason says so. Everything is a function of values: an observation, the host's
// facts, a forecast, a wish.
//
// # Worked example
//
// A container with a limit of 1 CPU that equals its one CPU shows 3 of 30 periods throttled and 1 ms of throttled time:
// there is nothing to fix. A container with a limit of 0.6 CPUs is stopped for 180 ms of each second, and its p99 is 115 ms.
// The forecast says 66 ms with a burst, 121 ms pinned to a CPU, 3 ms with a limit of 0.9: burst, because the larger limit was
// not asked for. Without a forecast it is burst too if the container uses less than 80 % of its limit.
//
// # Limits
//
// A choice is as good as its forecast, whose error stands in each row. A replay that does not reproduce its own recording
// recommends nothing. Without an API the labels of containers are unknown; a rule with labels then matches no container.
package policy
