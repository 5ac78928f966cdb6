// Package pace decides whether work may start in this period of a CPU quota, as a function of values.
//
// # Problem
//
// A quota of 70 ms in each 100 ms stops every thread of a container once 70 ms are used. Work that could wait uses them up,
// and then also the answer that takes 1 ms waits, for up to 30 ms and more. Fewer threads do not help below 1.5 CPUs: one
// thread alone uses up 0.7 CPUs.
//
// # Rule
//
// [Decide]: a task may start if what is left of the quota covers it, the tasks that run, and a reserve for the work that must
// not wait. A task needs its cost, but at most what is left of the period for one thread: the rest is of the next quota. The
// reserve shrinks with the period, down to what the kernel may keep on other CPUs. A task that would leave more to the next quota
// than that has waits for the next period. Else Decide says when the task may start:
// at the next period, or so near its end that the quota covers it.
//
// [Phase] learns when periods begin: the counter nr_periods goes up there. Each pair of readings with one step between them
// bounds the beginning; the bounds of all pairs are intersected. [Phase.Next] says when to read so that the bounds halve.
//
// # Example
//
// 70 of 100 ms, 10 % in reserve, no slack, one thread. After 50 ms 45 ms are used. A task of 30 ms needs 30, 25 are left: it
// waits. With r ms of the period left it needs r, and 0.07 r are reserved: 25 ms cover both at r = 23.3. So it starts in 26.7 ms.
//
// # Limits
//
// Work that runs is not stopped: it holds back at its next start or checkpoint. What else runs in the container is an average
// of the last second. The kernel hands out quota in slices of 5 ms a CPU (sched_cfs_bandwidth_slice_us) and a CPU keeps what
// it does not use of one for some milliseconds; [Work.Slack] covers that, and [Slack] learns how much it must be.
//
// Sources: kernel/sched/fair.c, sched_cfs_period_timer, do_sched_cfs_period_timer (nr_periods counts periods in which the group
// ran or was throttled), start_cfs_bandwidth (the phase stays over idle periods), __assign_cfs_rq_runtime, read at 6.18.
package pace
