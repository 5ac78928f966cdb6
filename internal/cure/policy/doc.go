// Package policy decides which remedy for which container, and says why not
// the others. It also reads the agent's rules file (Rules v1) and the user's
// objectives and latencies.
//
// # The rule
//
// Time counts, not periods: a container is a finding when it may be stopped for
// more than a bound (1 % of the time by default). Then pin is proposed where it
// can be done, else burst, else raise; weight only where it is asked for. All is
// a function of values: an observation, the host's facts, a wish.
//
// # Worked example
//
// A container with a limit of 1 CPU that equals its one CPU shows 3 of 30
// periods throttled and 1 ms of throttled time: nothing to fix. One with 32
// threads under the same limit on 2 CPUs is stopped for 750 to 1000 ms of each
// second: pin, on one CPU of its own; the reason adds that it uses its limit up,
// so that more work needs a larger one.
//
// # Limits
//
// It knows counters, not causes, and forecasts nothing. Labels of containers are
// not known without an API; a rule with labels then fits none.
package policy
