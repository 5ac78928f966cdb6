// Package scx holds a cgroup at its limit's width with a scheduler of its own (sched_ext): never stopped, and wide only
// while it has saved credit.
//
// # Problem
//
// A quota lets 32 threads of a container with a limit of 2 CPUs run at once. They spend 200 ms of CPU time in some 10 ms,
// and then all of them stop for 90 ms. A thread that must answer waits with them.
//
// # Rule
//
// At no moment more threads of a capped cgroup run than it has slots. A CPU takes a slot before it takes a thread from
// the cgroup's queue, so that CPUs that dispatch at the same moment do not exceed the cap. Who ran when the scheduler
// was attached, or joins the cgroup while it runs, may exceed it for one slice, 3 ms. Stats.Joined counts them.
//
// How many slots there are follows from a bucket of CPU time, which fills at the limit's rate up to the credit:
//
//   - With credit there are Cap.Widest slots, until what is left would not last for another millisecond.
//   - Without, a limit of 2 has 2 slots. One of 2.5 alternates between 2 and 3 every 4 ms, one of 0.5 between 0 and 1.
//
// A capped cgroup below a capped cgroup needs a slot of both, up to four levels. Among the threads that may run, the
// lowest virtual time is first. It passes by nice and by cpu.weight, on every level of cgroups. A thread that wakes up
// in a cgroup at its cap takes the slot of the thread that is furthest ahead of it. Where the cgroup has a slot and no
// CPU is idle, it takes
// the CPU of the thread without a cap that is furthest ahead of the cgroup's share. A thread that calls sched_yield(2) gives up a
// slice, so that those it waits for come first.
//
// While this scheduler runs, the kernel does not enforce cpu.max. So the scheduler does: each cgroup with a cpu.max and
// without a Cap has a bucket that fills at quota/period and holds quota + burst. Its threads are not stopped either.
//
// # Worked example
//
// A service with a limit of 2 CPUs and 400 ms of credit rests for 200 ms and has saved 400 ms. A request then wakes 8
// threads, each with 50 ms of work. They run at once and need 400 ms, of which the bucket fills 100 ms meanwhile: they are
// done after 50 ms. A quota of 200 ms without burst has them done after 125 ms: 25 ms, then stopped for 75 ms, then 25 ms.
//
// # Use
//
//	s, err := scx.Load(scx.Options{PinDir: dir})        // *Unavailable: why, and the way out
//	err = s.Set(cgroupID, scx.Cap{CPUs: 2.5, Credit: time.Second})
//	c, err := scx.Open(dir)                             // another process, while the loader lives
//	stats, err := c.Stats(cgroupID)
//	<-s.Done()                                          // the kernel threw it out; s.Err() says why
//
// The loader holds the scheduler: when it ends, in any way, every thread is under the kernel's own scheduler. If the
// scheduler leaves a thread waiting for 10 s, the kernel throws it out and does the same.
//
// # Limits
//
//   - Linux 6.17 or later, tried with 6.18; cgroup v2. 7.2 has other forms of the functions and is refused.
//   - One scheduler runs on a host. While ours does, every thread of the fair class is under it, capped or not.
//   - When a CPU goes offline or comes online, the kernel ends the scheduler (ErrRestart). The loader loads it again.
//   - Linux 6.18 does not tell schedulers of cpu.idle: such a cgroup shares by its weight.
//   - A bucket begins empty when its cgroup gets the cap. A slot is free some 100 ns before the kernel's
//     switch is complete, which a probe may see as one CPU more.
//   - Mean use stays some per cent below a limit that is a fraction, by the time that waking a CPU takes.
//
// # Sources
//
// kernel/sched/ext.c, ext_idle.c and Documentation/scheduler/sched-ext.rst, Linux 6.18.
package scx
