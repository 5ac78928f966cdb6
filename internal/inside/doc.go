// Package inside finds the CPU limit of the cgroup that a program is in, and how often it is stopped, from nothing but when
// threads of its own could run.
//
// # Problem
//
// In a container of someone else's platform there may be no cgroup file, no agent and no right to load BPF. A thread that
// wants to run and does not, for 40 ms, was stopped by a quota, or it waited for other work. Which of them, and what is the
// quota?
//
// # Rule
//
//  1. For a second or longer ([Trial]) a thread on each CPU runs as much as it can, then half of the time. The stretches in which none
//     of them ran are silences. A quota's stop ends for all threads at once, when the kernel refills at the end of a period.
//     So the ends of silences lie on a lattice: a phase plus whole periods ([Find]).
//  2. Threads that share a CPU take turns at the kernel's ticks, which are a lattice too. The threads rest at random moments,
//     so that turns begin at other ticks. A lattice counts only if chance and ticks hardly make it (at most once in a
//     million looks).
//  3. A neighbour that runs every 100 ms also makes a lattice. But a stop depends on what the cgroup used: with half as much
//     work it comes as late as the same quota allows, or not at all. Where the use halves and the silences stay, it is no
//     quota.
//  4. The quota is what the processes in sight used from one end to the next, over periods that all ended with a stop.
//  5. Then threads sleep and look now and then ([Watch]). A look that is late, and that the lattice ends, is a stop of the
//     program beside them ([Finding.Stops]). Late looks of other phases say how many would be so by chance.
//
// # Example
//
// Quota 20 ms, period 100 ms, two CPUs. Silences of the trial, with what was used until their end:
//
//	11.4-48.6 ms (16.8 ms)   64.4-148.5 (38.9)   164.4-247.8 (57.7)   258.4-347.8 (76.9)
//
// All end at 47.9 ms and a multiple of 100 ms. From the first to the last, 60.1 ms were used in three periods: 20.0 ms each.
//
// # Limits
//
// A period of more than a quarter of the trial ends too seldom within it ([LongestPeriod]): no limit means none with a
// period up to that. One with a longer period, and a burst in it, may not be reached at all within a trial of a second.
// A quota that the trial does not reach, because others have the CPUs or because it is larger than what the CPUs give,
// is not known. Processes out of sight (of another container of a pod that has the quota, or with hidepid) make the
// quota look smaller. A stop that is shorter than the time between two looks may be missed. In a virtual machine that is
// stopped as a whole, used time is the guest's own.
//
// # Sources
//
// kernel/sched/fair.c, sched_cfs_period_timer and start_cfs_bandwidth (hrtimer_forward_now keeps the phase over idle
// periods), do_sched_cfs_period_timer (nr_throttled), read at 6.18; clock_getcpuclockid(3).
package inside
