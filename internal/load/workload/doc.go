// Package workload runs load for real: child processes whose threads burn CPU
// and one thread that sleeps and records how long each sleep really took.
//
// # Problem
//
// To show what a quota does, something must run under it. That something burns
// every CPU it can get, so it must never outlive the one who started it: not
// after Ctrl-C, not after kill -9, not if its own threads are starved by the
// very quota they are to show.
//
// # Rule
//
// A child is this very program run again (/proc/self/exe, [ChildCommand]). It
// waits until its parent has put it into its cgroups and lets it go, and it
// ends at the first of three things:
//
//   - the pipe that its parent holds closes (its standard input). The kernel
//     closes it whatever the parent died of. PR_SET_PDEATHSIG would not do: it
//     follows the thread that forked, and Go's threads come and go (prctl(2),
//     "parent" is the creating thread);
//   - its deadline, looked at by its own timer;
//   - its deadline and one second: a timer of the kernel sends SIGKILL
//     (timer_create(2), SIGEV_SIGNAL), with no help from any thread of it.
//
// The children run in a process group of their own: Ctrl-C at a terminal
// reaches the parent alone, which then ends them and cleans up.
//
// # Worked example
//
// [Spec]{Burners: 32, Sleep: 10 ms, Deadline: 12 s} starts 32 threads that
// count and one that sleeps 10 ms, again and again. Each sleep is one
// [Record]: {Start: 5.000 s, Took: 10.08 ms, Work: 1.2e9}: slept 10.08 ms
// from 5 s on the host's monotonic clock, after which the burners had gone
// 1.2e9 rounds in all. Under a quota of 100 ms per 100 ms on 2 CPUs a sleep
// that ends when the quota is spent takes until the next period instead:
// {Took: 160 ms}.
//
// # Limits
//
//   - The sleeper's own cost: about 20 us per sleep.
//   - A stall counts once however long it is: a thread that is held cannot
//     start another sleep. Percentiles here are over sleeps, as in seed 003,
//     and are kinder than percentiles over time.
//   - At most [MaxBurners] threads and [MaxDeadline].
//   - The burners only count: no memory traffic, no system calls.
//
// Sources: seed 003 (Uber, "Appendix: testing quotas and cpusets", 32 burners
// and a 10 ms sleep); clock_nanosleep(2), timer_create(2), prctl(2).
package workload
