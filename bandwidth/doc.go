// Package bandwidth models the CFS bandwidth control of the Linux kernel as an exact state machine. It tells
// when each CPU of a group takes quota, and when the kernel throttles and unthrottles each CPU.
//
// # The problem
//
// "0.4 CPUs" reads as if a group of threads ran at 40 % of a CPU. The kernel instead gives the group a pool
// of 40 ms and refills it every 100 ms. A CPU that runs one of the group's threads takes a slice of 5 ms from
// the pool into a silo of its own. It comes back for the next slice when that one is used up. When the pool
// is empty, each CPU uses up its silo. The kernel then throttles that CPU, by itself, until the next refill.
// Latency, and every figure in cpu.stat, follows from these few rules and their corner cases: how much a CPU
// keeps when it goes idle, which CPU is served first, and when the kernel notices a used-up silo.
//
// # The rules
//
//	take      silo at or below 0: fill it to a slice from the pool, debt first    Charge
//	throttle  pool empty: the CPU joins the queue                                 Check, Enqueue
//	return    last thread gone: all but 1 ms of the silo goes back                Dequeue
//	slack     5 ms after such a return: serve the queue, if the pool has > 5 ms   SlackTimer
//	period    count, refill, serve the queue: each CPU gets its debt and 1 ns     PeriodTimer
//	stop      a period without use stops the timer                                PeriodTimer
//	write     a new limit refills the pool and clears silos and debts             Configure
//
// The kernel charges a thread after it ran: at the scheduler's tick (1, 4 or 10 ms), or when the thread
// sleeps. A silo that ran out in between has become a debt, which the next refill pays first. Single periods
// are therefore uneven, but the mean is exact.
//
// # A worked example
//
// A limit of 40 ms in 100 ms, and one thread that needs 200 ms of CPU from time 0 on. The thread is charged
// the instant its silo is used up. This is the conceptual model of Indeed's "Fixing CPU Limits in the Cloud",
// part one:
//
//	time       pool     silo
//	0          40       0        the write of the limit filled the pool
//	0          35       5        the thread becomes runnable: the CPU takes a slice
//	5          30       5        used up: the next slice ... seven more
//	40         0        0        the pool is empty: throttled
//	100        40 -1ns  1ns      refill (nr_periods 1, nr_throttled 1), 1 ns for the CPU in the queue
//	...                          again at 140, 240 and 340
//	440        0        0        after 4 x 40 ms and 40 ms more the thread is done
//	500        40       0        nr_periods 5, nr_throttled still 4: no CPU waits
//	600        40       0        nr_periods 6: an idle period stops the timer
//
// The work of 200 ms takes 440 ms. throttled_time is 4 x 60 ms = 240 ms. The thread was throttled in 4 of the
// 5 periods in which it had work (Stat.ActivePeriods). The kernel's own nr_periods is 6, because only an
// expiry that finds a whole period without use stops the timer.
//
// The same quota over 64 CPUs with short runs shows why the rules matter. Each CPU that runs for a moment
// takes 5 ms and keeps 1 ms of it, so ten such CPUs use up a quota of 10 ms. From 5.4 on the kept time stays
// valid, so the group pays this once. From 4.18 to 5.3 it expired with the period, so the group paid again in
// each period. Its CPU use stayed far below the limit, and it was throttled all the time.
//
// # Use
//
// A Group is one cgroup level. A thread below several limited cgroups is charged in all of them, and may run
// where none of them is throttled; the caller combines the levels. A Group allocates nothing after New. The
// package has no dependencies, no goroutines and no clock.
//
// The package is v0: a minor release may change its names.
//
// # Limits
//
// Not modelled: CPUs that go offline, the doubling of a period that is too short for the machine's timer, and
// the time that the timer's own loop over many CPUs takes. From 7.2 on the kernel's distribution first
// charges the running threads; the caller does that with Charge before PeriodTimer.
//
// # Sources
//
// kernel/sched/fair.c of 5.10, 6.1, 6.12 and 7.2, whose functions are named at the methods; the patches named
// at each Release; Documentation/scheduler/sched-bwc.rst.
package bandwidth
