// Package probe measures how many CPUs a container uses at one instant, how many it wants, and when a quota holds it
// back. It counts the kernel's own scheduling events, so its figures are exact where samples are estimates.
//
// # Problem
//
// Throttling is a matter of milliseconds: 32 threads spend a quota of 200 ms in 19 ms. Counters have only sums, and
// samples miss it. The scheduler knows at every switch, and BPF lets us count there for some 100 ns.
//
// # Use
//
//	p, err := probe.Open(probe.Options{})         // *Unavailable: what was refused and the way out
//	p.Watch(probe.Container{ID: id, Path: path})
//	c, err := p.Read(id)                          // Counts, cumulative: width, wanted, stopped time
//	err = p.ReadInto(id, &c)                      // the same of many containers in turn, without garbage
//	p.PeriodRows(ctx, func(r probe.PeriodRow) error)   // a row per period and watched container
//	footer, err := p.Record(ctx, probe.RecordOptions{Target: c, For: 10 * time.Second, Begin: …},
//		func(e *recording.Event) error)       // every event of one container, in order of time
//	p.Costs()                                     // after EnableCosts: runs and time per program
//	p.Close()
//
// # Rule
//
// Each CPU keeps which container holds it. Each thread keeps which container counts it as wanting a CPU. So every
// increment gets its decrement in the same container, wherever the thread moved meanwhile. One exchange changes a count
// together with the time since when it holds, so every nanosecond is counted once. A task's container is the nearest
// watched cgroup above its own in the cpu controller's hierarchy, on v1 and v2. See bpf/probe.bpf.c; for stopped time
// see bpf/hold.h.
//
// # Worked example
//
// Five threads run for 3 s with 400 ms/s of CPU. WidthNS is [1.86 s, 1.07 s, 0.07 s]. The sum of level x time is 1.21
// s, and the CPUs and the cgroup's usage counter show the same. WantedNS is mostly at 5, because throttled threads want
// a CPU too.
//
// # Limits
//
//   - If a running thread is moved between cgroups without a switch, the next timer of its CPU corrects the count, at
//     the latest a tick later. For a waiting thread its next run does.
//   - Before Linux 6.18, threads may wait beside those of a sibling container when an ancestor is throttled. The probe
//     sees that only with the next event of their own.
//   - A wake-up in an interrupt other than a timer's names the interrupted thread as the waker.
//   - Reads and writes of sockets are in a recording on kernels since 6.3: TCP and Unix streams, and datagrams of UDP,
//     that a client outside
//     the container opened. See bpf/socket.h.
//   - Recordings name at most 4096 processes outside containers; further ones appear as the root's.
//   - A kernel may switch without an event; the probe counts that (recording.Footer.UnseenSwitches). The next switch
//     corrects width. A thread that slept in such a switch counts as wanted until its next sleep, and in a recording as
//     asleep.
//   - Containers without a cgroup of the cpu controller (v2 without cpu in subtree_control) are not distinguishable.
//
// # Sources
//
// kernel/sched/core.c (__schedule, try_to_wake_up), fair.c (throttle_cfs_rq_work, distribute_cfs_runtime,
// do_sched_cfs_period_timer), Linux 6.1 to 6.18; include/trace/events/sched.h, timer.h, sock.h (sk_data_ready,
// sock_recv_length, sock_send_length).
package probe
