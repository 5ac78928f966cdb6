// Package leastlimit tells from the histograms of a container's rows how small its limit may be.
//
// # Problem
//
// A row says how long so many CPUs were in use, and how long so many threads ran or were runnable. It does not say in
// which order. Whether a quota stops a container depends on the order: 100 ms eight wide are one long stop below a
// limit of 2, or none at all if they come as eight bursts of a millisecond each.
//
// # Rule
//
// Every order lies between two. In the worst one, all time at a level is one burst far longer than a period: work of k
// CPUs for t takes t*k/limit, so that it is stopped for t*(k/limit - 1). In the best one the work of a slot is spread
// over it evenly: it is never stopped while the limit is at least the slot's mean. [Needs] are the least limits by
// three rules:
//
//   - Safe: in the worst order, at most a share (such as 0.1 %) of the time from the first thread that is runnable to the last one
//     that is done is time in which the quota stops it.
//   - Low: the largest mean of a slot. No order is served by less.
//   - High: the most CPUs wanted at once. With it there is no stop in any order.
//
// The demand is that of wanted (running and runnable threads) where no quota stopped the container. Where one did,
// threads pile up behind it, and width (CPUs in use) is taken: a quota stops threads, but does not make those that run
// fewer.
//
// # Worked example
//
// 10 s at 1 CPU and 10 ms at 4, in 100 s, never stopped: Low 0.1004, High 4. At a limit of 2 the worst order stops it
// for 10 ms*(4/2-1) = 10 ms of 10.02 s, which is 0.1 %. So that is Safe, for a bound of 0.1 %.
//
// # Limits
//
// Rows with periods tell more: see package periodmodel. This is for those without.
//
// The demand of the time that the rows have is taken to be that of the time to come. Burst, the overrun of a tick and
// the slices that CPUs keep are left out. Latencies are not in rows: what keeps the 99th percentile as it is, is that
// there is next to no stop. docs/reference/fleet.md says the same to users.
package leastlimit
