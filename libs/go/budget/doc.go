// Package budget keeps a Go program within its CPU limit before the kernel stops it: without rights, and with nothing but the
// standard library.
//
// # Problem
//
// A container with a limit of 0.7 CPUs may use 70 ms of CPU time in each 100 ms. Work that could wait uses them up. Then the
// kernel stops every thread until the next period, and with them health checks, answers that take a millisecond, and locks.
// Go's own GOMAXPROCS never goes below 2, and one thread alone uses up 0.7 CPUs.
//
// # Rule
//
//  1. One budget for the process ([Process]) follows the limit: the least quota / period along the path of its cgroup, v1 or
//     v2. It is read four times a second, so that a resize in place is in force within 2 seconds.
//  2. GOMAXPROCS below a limit of 2 CPUs is what the budget's tasks need. A GOMAXPROCS of the user's own wins.
//  3. A task has a class. [IO] is short, does not block, and never waits behind the others. [App] may wait for some
//     milliseconds; [Background] yields to App. Each class has so many permits as fit the limit.
//  4. Pacing: App and Background start only while what is left of this period's quota covers them and a reserve for IO. Else
//     they wait for the next period, or for its last part, which the next quota pays.
//  5. [Budget.AcquireWithin] rejects what would wait too long, as it arrives. The packages shed and grpcshed build on it.
//  6. A task that waits for something else, such as a database, does so in [Wait]: others use its permit meanwhile.
//  7. What goes wrong makes the budget let everything run, as without the library, and tells [Options.Warn] once for each cause:
//     files that cannot be read, a limit that goes away, a task that never returns.
//
// # Example
//
//	err := budget.Process().Do(r.Context(), budget.App, func() { resize(picture) })
//
// Under 0.7 CPUs App has one permit. Three tasks of 20 ms come at once, with the period. The first two run for 40 ms. 30 ms are
// left, and 7 of them are reserved for IO at the start of the period; the third needs 20, so it starts too. A fourth has to wait.
//
// # Limits
//
// A task that runs is not stopped. A long one calls [Permit.Checkpoint], or its CPU time is spent at once. A task's cost is
// learnt from the earlier ones of its class: classes of very different tasks are paced worse. The phase of the period is learnt
// from cpu.stat within a second or two of work; until then nothing is held back. The garbage collector is not held back. A
// process that always wants more than the limit gets some 90 % of it: the rest is the reserve, and the quota that CPUs keep.
//
// A child process has a budget of its own. Its CPU time is, to this one, that of the rest of the container.
//
// Where App and Background hardly run, or where there is no limit, the library brings nothing.
//
// Sources: Twitter's CFS throttling note (classes of threads, sizes by limit); Linux kernel/sched/fair.c at 6.18; the packages
// [github.com/unthrottle/unthrottle/libs/go/pace] and internal/limit have the rest.
package budget
