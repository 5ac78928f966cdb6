// Package workload runs load for real: child processes with threads that burn CPU
// time, and one thread that sleeps and records how long each sleep took.
//
// # Problem
//
// To show the effect of a quota, a process must run under it that burns every CPU it
// can get. This process must never outlive its parent: not after Ctrl-C, not after
// kill -9, and not when the quota starves its own threads.
//
// # Rule
//
// A child is this very program run again ([ChildCommand], package child). It waits
// until its parent has put it into its cgroups and calls [Process.Go]. Package child
// has the three ways in which it ends.
//
// # Worked example
//
// [Spec]{Burners: 32, Sleep: 10 ms, Deadline: 12 s} starts 32 threads that count and
// one that sleeps 10 ms, again and again. Each sleep is one [Record], for example
// {Start: 5.000 s, Took: 10.08 ms, Work: 1.2e9}. It began at 5 s of the host's
// monotonic clock and took 10.08 ms. At its end the burners had done 1.2e9 rounds.
//
// Under a quota of 100 ms per 100 ms on 2 CPUs some sleeps end when the quota is
// spent. Such a sleep takes until the next period instead: {Took: 160 ms}.
//
// # Limits
//
//   - The sleeper itself costs about 20 us per sleep.
//   - A stall counts once however long it is: a stopped thread cannot start another
//     sleep. Percentiles here are over sleeps, as in seed 003. They are kinder than
//     percentiles over time.
//   - At most [MaxBurners] threads and [MaxDeadline].
//   - The burners only count: no memory traffic, no system calls.
//
// Sources: seed 003 (Uber, "Appendix: testing quotas and cpusets", 32 burners
// and a 10 ms sleep); clock_nanosleep(2).
package workload
