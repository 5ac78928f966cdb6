// Package latency measures how each remedy changes the latency of a thread that
// sleeps beside threads that burn.
//
// # Problem
//
// Seed 003's experiment shows the effect of a quota in a minute: a sleep of 10 ms
// takes until the next period. Which remedy ends that, at which price?
//
// # Rule
//
// In one cgroup 16 threads per CPU of the limit burn, and one sleeps 10 ms again and
// again. Each remedy runs once per round, in an order that rotates. Figures are medians
// over the rounds. A ratio compares the p90 with that of the same round's plain quota.
// Beside it are the lowest and the highest ratio of all rounds.
//
// # Equal conditions
//
// On 2 CPUs the limit is 1 and raise is x1.5, since x2 would be no limit. Every row
// shows the CPUs granted. It has a ratio only where they are those of the plain quota:
// a row with more CPUs is not better for it.
//
// # Worked example
//
// Under the quota the p90 of a sleep is 70 ms, pinned to one CPU 14 ms: a ratio of
// 0.2.
//
// # Limits
//
// Burst saves unused quota, and burning threads leave none: the row shows that it
// cannot help here. On a host with few CPUs the quota does little harm: the more CPUs a
// container uses at once, the sooner it spends its quota.
//
// Source: seed 003, "Appendix: testing quotas and cpusets".
package latency
