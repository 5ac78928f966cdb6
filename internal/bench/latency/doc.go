// Package latency measures what each remedy does to the latency of a thread that
// sleeps beside threads that burn.
//
// # Problem
//
// Seed 003's experiment shows in a minute what a quota does: a sleep of 10 ms
// takes until the next period. Which remedy ends that, at which price?
//
// # Rule
//
// 16 threads per CPU of the limit burn, one sleeps 10 ms again and again, all in
// one cgroup. Each remedy is run in turn, round after round, in an order that
// turns. Figures are medians over the rounds; a ratio is of the p90 to that of the same
// round's plain quota, with the lowest and the highest of all rounds.
//
// # Equal conditions
//
// On 2 CPUs the limit is 1 and raise is x1.5, since x2 would be no limit. Every
// row shows the CPUs granted. Ratios stand only where they are those of the plain
// quota: what has more CPUs is not better for it.
//
// # Worked example
//
// Under the quota the p90 of a sleep is 70 ms, pinned to one CPU 14 ms: a ratio of
// 0.2.
//
// # Limits
//
// Burst saves what is not used, and burning threads use all: it cannot help here,
// and the row shows so. On a host with few CPUs the harm is small: the more CPUs
// a container can use at once, the sooner its quota is gone.
//
// Source: seed 003, "Appendix: testing quotas and cpusets".
package latency
