// Package policy decides which remedy fits which container, and says why not the others. It also reads the agent's rules
// file (Rules v1) and the user's objectives.
//
// # The rule
//
// Time counts, not periods: a container is a finding when it may be stopped for more than a bound (1 % of the time by
// default). Then policy proposes pin where it is possible, else burst, else raise. It proposes weight only where the user
// asks for it. Everything is a function of values: an observation, the host's facts, a wish.
//
// # Worked example
//
// A container with a limit of 1 CPU that equals its one CPU shows 3 of 30 periods throttled and 1 ms of throttled time:
// there is nothing to fix. A container with 32 threads under the same limit on 2 CPUs is stopped for 750 to 1000 ms of each
// second: pin, on one CPU of its own. The reason adds that it uses its whole limit, so that more work needs a larger one.
//
// # Limits
//
// Policy knows counters, not causes, and forecasts nothing. Without an API the labels of containers are unknown; a rule
// with labels then matches no container.
package policy
