// Package simulate runs a scenario on a simulated host: CPUs with ticks, fair
// run queues, threads that sleep, run and serve requests, and the kernel's CFS
// bandwidth control of package bandwidth over all of it.
//
// # The problem
//
// What a CPU limit does to latency depends on when each CPU notices that its
// share is used up, who was served first, and who happened to wake up in
// between. No formula has that; a host that can try it out is slow, noisy and
// has one number of CPUs. A simulation that keeps the kernel's rules exactly
// and everything else simply answers in milliseconds, for 64 CPUs too, and the
// same again for the same seed.
//
// # The rule
//
// Time jumps from event to event: a group's period or slack timer, an
// unthrottling interrupt, a workload's arrival, the end of a thread's work, a
// tick, the end of a sleep; at one time in this order. Each event charges the
// CPUs that it concerns up to now, changes who can run, lets used-up quotas
// throttle, and picks who runs next. A tick, a sleep or a switch is when the
// kernel charges; nothing is charged in between, unless the host's hz is
// "continuous".
//
// Scheduling is fair per CPU and level: from 6.6 on the earliest deadline among
// those who are owed something, before it the smallest virtual runtime. A
// thread wakes on the CPU it was on, or on an idle one; a CPU that goes idle
// takes a waiting thread from the busiest; a tick sends waiting threads to idle
// CPUs.
//
// # A worked example
//
// examples/scenarios/cgroup-lat-quota.yaml: 32 threads burn on 32 CPUs under 200 ms in
// 100 ms. At a boundary each of the 32 gets 1 ns and runs. At the next tick,
// between 0 and 4 ms later, each owes what it ran, say 2 ms, and fills its silo
// to 5 ms: the first 28 take 7 ms each, the 29th gets the last 4 ms, and the
// other 3 are throttled with their debt of 2 ms. 8 ms later all are. A thread of the same
// group that sleeps 10 ms and began to within those milliseconds wakes when
// nothing is left, and runs 100 ms after it went to sleep. 16 s of this are
// 120,000 events.
//
// # Limits
//
// CPUs are equal unless the scenario has a topology; then a busy sibling, a cold
// cache and remote memory slow all work alike. A system call that runs through a throttling, from 6.18 on, has the
// share of a thread of the root meanwhile. A group's share of a CPU follows the number of its threads there,
// not their load averages; balancing looks at numbers of threads, too. What a
// switch costs is not modelled, what a wake-up costs is told (wake_cost). docs/reference/simulate.md says how the
// results compare with published and measured ones.
//
// # Sources
//
// kernel/sched/fair.c of 5.10 to 7.2; package bandwidth's for its rules. Fair
// queueing by deadlines: Stoica and Abdel-Wahab, "Earliest Eligible Virtual
// Deadline First", 1995.
package simulate
