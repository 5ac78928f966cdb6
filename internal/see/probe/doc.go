// Package probe measures how many CPUs a container uses at once, how many it wants, and when a quota holds it back, from
// the kernel's own scheduling events: exact where others sample.
//
// # Problem
//
// Throttling is a matter of milliseconds: 32 threads spend a quota of 200 ms in 19 ms. Counters know sums, samples miss
// it. The scheduler knows, at every switch, and BPF lets us count there for the price of some 100 ns.
//
// # Use
//
//	p, err := probe.Open(probe.Options{})         // *Unavailable: what was refused and what to do
//	p.Watch(probe.Container{ID: id, Path: path})
//	c, err := p.Read(id)                          // Counts, cumulative: width, wanted, stopped time
//	p.PeriodRows(ctx, func(r probe.PeriodRow) error)   // a row per period and watched container
//	footer, err := p.Record(ctx, probe.RecordOptions{Target: c, For: 10 * time.Second, Begin: …},
//		func(e *recording.Event) error)       // every event of one container, in order of time
//	p.Costs()                                     // after EnableCosts: runs and time per program
//	p.Close()
//
// # Rule
//
// Each CPU remembers which container holds it, each thread which container counts it as wanting a CPU; what was counted
// up in one place is counted down there, whatever moved meanwhile. Counts change together with the time since when they
// hold, by one exchange: every nanosecond is counted once. A container is the nearest watched cgroup above a task's own
// in the cpu controller's hierarchy, on v1 and v2. See bpf/probe.bpf.c; stopped time: bpf/hold.h.
//
// # Worked example
//
// Five threads with 400 ms/s of CPU, 3 s: WidthNS [1.86 s, 1.07 s, 0.07 s], whose sum of level x time, 1.21 s, is what
// the CPUs and the cgroup's usage counter say. WantedNS is mostly at 5: throttled threads want a CPU too.
//
// # Limits
//
//   - A running thread that is moved between cgroups without a switch is put right at the next timer of its CPU, at the
//     latest a tick later; one that waits, when it next runs.
//   - Before Linux 6.18, threads that wait beside a sibling container's when an ancestor is throttled are seen to be
//     held back only with the next event of their own.
//   - A wake-up in an interrupt other than a timer's names whom it interrupted as the waker.
//   - Recordings name at most 4096 processes outside containers; further ones are told as the root's.
//   - A kernel may make a switch without telling: counted (recording.Footer.UnseenSwitches). Width is put right at the
//     next one; a thread that went to sleep in it counts as wanted until its next sleep, and in a recording as asleep.
//   - Containers without a cgroup of the cpu controller (v2 without cpu in subtree_control) cannot be told apart.
//
// # Sources
//
// kernel/sched/core.c (__schedule, try_to_wake_up), fair.c (throttle_cfs_rq_work, distribute_cfs_runtime,
// do_sched_cfs_period_timer), Linux 6.1 to 6.18; include/trace/events/sched.h, timer.h.
package probe
