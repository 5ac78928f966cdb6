// Package bandwidth is the Linux kernel's CFS bandwidth control as an exact
// state machine: which CPU of a group takes how much of the quota when, and
// which is throttled until when.
//
// # The problem
//
// "0.4 CPUs" reads as if a group of threads ran at 40 % of a CPU. What the
// kernel does instead: the group has a pool of 40 ms that is filled up every
// 100 ms. A CPU that runs one of its threads takes a slice of 5 ms from the
// pool into a silo of its own, and comes back for the next one when that is
// used up. When the pool is empty, each CPU runs its silo down and is then
// throttled, by itself, until the next refill. Latency, and every figure in
// cpu.stat, follows from these few rules and their corners: what a CPU keeps
// when it goes idle, who is served first, when a used-up silo is noticed.
//
// # The rules
//
//	take      silo at or below 0: fill it to a slice from the pool, debt first  Charge
//	throttle  nothing to take: the CPU joins the queue                          Check, Enqueue
//	return    last thread gone: all but 1 ms of the silo goes back              Dequeue
//	slack     5 ms after such a return: serve the queue, if the pool has >5 ms  SlackTimer
//	period    count; refill; serve the queue: each debt and 1 ns                PeriodTimer
//	stop      a period without use stops the timer                              PeriodTimer
//	write     a new limit is a refill, and forgets silos and debts              Configure
//
// A thread is charged after it ran: at the scheduler's tick (1, 4 or 10 ms),
// or when it sleeps. A silo that ran out in between has become a debt, which
// the next refill pays first: single periods are uneven, the mean is exact.
//
// # A worked example
//
// A limit of 40 ms in 100 ms, one thread that needs 200 ms of CPU from time 0
// on, charged the instant a silo is used up (the conceptual model of Indeed's
// "Fixing CPU Limits in the Cloud", part one):
//
//	time       pool     silo
//	0          40       0        filled when the limit was written
//	0          35       5        the thread becomes runnable: the CPU takes a slice
//	5          30       5        used up: the next slice ... seven more
//	40         0        0        nothing to take: throttled
//	100        40 -1ns  1ns      refill (nr_periods 1, nr_throttled 1), 1 ns for the CPU in the queue
//	...                          again at 140, 240 and 340
//	440        0        0        after 4 x 40 ms and 40 ms more the thread is done
//	500        40       0        nr_periods 5, nr_throttled still 4: nobody waits
//	600        40       0        nr_periods 6: an idle period stops the timer
//
// 440 ms for 200 ms of work; throttled_time 4 x 60 ms = 240 ms; throttled in 4
// of the 5 periods in which there was something to run (Stat.ActivePeriods).
// The kernel's own nr_periods is 6: only the firing that finds a whole period
// without use stops the timer.
//
// The same quota over 64 CPUs of short runs shows why the rules matter. Each
// CPU that runs for a moment takes 5 ms and keeps 1 ms of it: a quota of 10 ms
// is gone after ten such CPUs. From 5.4 on what a CPU keeps stays good, so this
// is paid once. From 4.18 to 5.3 it expired with the period and was paid again
// in each: CPU use far below the limit, and throttled all the time.
//
// # Use
//
// A Group is one level; a thread below several limited cgroups is charged in
// all of them and may run where none of them is throttled. Package simulate
// does that. A Group allocates nothing after New, and tells each step to Trace
// if it is set.
//
// # Limits
//
// Not modelled: CPUs going offline, the doubling of a period whose timer the
// machine cannot keep up with, and the time that the timer's own loop over many
// CPUs takes. Era h's distribution first charges what runs at that moment; the
// caller does that by calling Charge before PeriodTimer.
//
// # Sources
//
// kernel/sched/fair.c of 5.10, 6.1, 6.12 and 7.2, whose functions are named at
// the methods; the patches named at the eras; Documentation/scheduler/
// sched-bwc.rst.
package bandwidth
