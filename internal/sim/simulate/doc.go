// Package simulate runs a scenario on a simulated host. The host has CPUs with ticks, fair run queues,
// threads that sleep, run and serve requests, and the kernel's CFS bandwidth control of package bandwidth.
//
// # The problem
//
// The effect of a CPU limit on latency depends on when each CPU notices that the quota is used up. It also
// depends on which CPU the kernel served first, and which thread woke up in between. No formula has that. A real host is slow and
// noisy, and has one number of CPUs. This simulation keeps the kernel's rules exactly and the rest simply. It
// answers in milliseconds, for 64 CPUs too, and gives the same answer for the same seed.
//
// # The rule
//
// Time jumps from event to event: a group's period or slack timer, an unthrottling interrupt, a workload's
// arrival, the end of a thread's work, a tick, the end of a sleep. Events at one time come in this order.
// Each event charges its CPUs up to now, changes which threads can run, lets used-up quotas throttle, and
// picks the next threads. The kernel charges at ticks, sleeps and switches, and so does the simulation,
// unless the host's hz is "continuous".
//
// Scheduling is fair per CPU and level: from 6.6 on by the earliest deadline among members with a positive
// lag, before by the smallest virtual runtime. A thread wakes on its last CPU, or on an idle one. A CPU that
// goes idle takes a waiting thread from the busiest CPU. A tick sends waiting threads to idle CPUs.
//
// # A worked example
//
// examples/scenarios/cgroup-lat-quota.yaml: 32 threads burn on 32 CPUs under 200 ms in 100 ms. At a boundary
// each of the 32 gets 1 ns and runs. At the next tick, between 0 and 4 ms later, each owes what it ran, say 2
// ms, and fills its silo to 5 ms. The first 28 take 7 ms each, the 29th gets the last 4 ms, and the kernel
// throttles the other 3 with their debt of 2 ms. 8 ms later all are throttled. A thread of the same group
// that begins a sleep of 10 ms within those milliseconds wakes when nothing is left. It runs 100 ms after it
// went to sleep. 16 s of this are 120,000 events.
//
// # Limits
//
// CPUs are equal unless the scenario has a topology. Then a busy sibling, a cold cache and remote memory slow
// all work alike. From 6.18 on a system call that runs through a throttling has the share of a thread of the
// root meanwhile. A group's share of a CPU follows the number of its threads there, not their load averages,
// and so does load balancing. The cost of a switch is not modelled; the scenario gives the cost of a wake-up
// (wake_cost). docs/reference/simulate.md compares the results with published and measured ones.
//
// # Sources
//
// kernel/sched/fair.c of 5.10 to 7.2; package bandwidth's for its rules. Fair queueing by deadlines: Stoica
// and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995.
package simulate
