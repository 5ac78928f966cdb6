// Package sampled makes the figures of a diagnosis from samples of counters and of threads' own files, where nobody may record
// scheduling events.
//
// # Problem
//
// cpu.stat says that a quota stopped a container, not which threads spent it. A thread's schedstat says for how long it has run
// and waited for a CPU, not what it waited for. Both can be read without rights.
//
// # Rule
//
//	a := sampled.New(sampled.Target{...})
//	a.Add(&sample)          // one by one; memory is bounded
//	e := a.Finish(...)      // diagnose.Sampled, for the one diagnosis
//
// The kernel counts a stop when it ends: nr_throttled and throttled_time grow in the sample after that, and so does the waiting
// of each thread that was held back, which it counts when the thread runs again. A stop thus ends in the sample in which
// throttled_time grows. It is as long as the longest waiting of a thread that ends there, and no longer than throttled_time grew,
// which is a sum over CPUs.
//
// A thread's waiting reaches back from the sample in which it grew. What overlaps with a stop was for the quota; the rest was for
// a CPU. What ran in a sample in which a stop ended belongs to the next period: before, nothing could run.
//
// In a container no cgroup above its own is visible, and its pod's quota may stop it. Then long waits of all its threads that end at one
// moment of a period are stops ([Of]), and where it uses as much in such a period as its own quota has, both are one limit.
//
// # Worked example
//
// A quota of 50 ms in 100 ms, two CPUs, samples every 10 ms. Four threads wake up and run two at a time: three samples have
// 20, 20 and 10 ms of CPU time. In the next seven samples nothing grows. In the eighth nr_throttled is one more, throttled_time
// 150 ms, and each thread has waited for 75 ms and more: the container was stopped for 75 ms. The two samples of 20 ms are wider
// than the one CPU that half a CPU of quota fills: the cause is "burst".
//
// # Limits
//
//   - Width is a mean of a sample. Threads that run by turns within one look as if they ran one beside the other for a part of it.
//   - The kernel adds to a running thread's time at its ticks. Up to a tick of each thread's time is in the sample after it.
//   - Waiting for CPUs is divided between the container's own threads and others by who used the CPUs, not by who held which.
//   - The time between episodes of close samples counts for the mean use alone. An episode is the last one when enough stops were
//     seen, so that episodes have more of them than the time has.
//
// # Sources
//
// sched_info_arrive, sched_info_depart (kernel/sched/stats.h) and proc_pid_schedstat (fs/proc/base.c): fields are run time,
// waiting and the number of runs. do_sched_cfs_period_timer and unthrottle_cfs_rq (kernel/sched/fair.c): when counters grow.
// Read at 6.12 and 6.18.
package sampled
