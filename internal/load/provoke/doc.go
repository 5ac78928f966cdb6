// Package provoke makes each cause of standing still happen for real: processes
// whose threads have names and rhythms, in cgroups that a scenario describes.
//
// # Problem
//
// A diagnosis is right only if it names what was done. So something must do
// exactly one thing, on the real kernel, and be able to leave it out again.
//
// # Rule
//
// A [Spec] is one process: pools of threads, each with a name (prctl(2),
// PR_SET_NAME), an amount of CPU time per run, and a rhythm. A run costs the same
// CPU time however often it is interrupted ([workload.BurnFor]); only how long it
// takes differs. A run that is due while the one
// before still goes on is left out: a pool never builds up a queue. The process
// is this very program started again (package child): it ends with its parent.
//
// A [Scenario] is cgroups with limits and CPUs, and processes in them; one of the
// cgroups is the target. [Causes] are the scenarios that provoke one cause each.
//
// # Worked example
//
// Pool{Name: "http-worker", Threads: 8, Work: 10 ms, Every: 250 ms, Together:
// true} under a limit of 0.6 CPUs on 2 CPUs: every quarter of a second 8 threads
// wake and want 80 ms together. Two wide they spend the 60 ms of the quota in 30
// ms, and stand still for 70. The mean is 0.32 CPUs, 53 % of the limit.
//
// # Limits
//
//   - User work counts only: it touches no memory. Kernel work is reading
//     /dev/urandom, in one system call per run; its length is calibrated when the
//     process starts, and off by what the CPU's speed changes afterwards.
//   - The Go runtime has a few threads of its own in each process, which bear the
//     name of its first pool. The one that would run all the time is held
//     ([child.Process.Hold]): without that, a tenth of a slow machine's CPU time was
//     the runtime's.
//
// Sources: seed 000 (bursts), seed 001 (one thread, a tiny limit), seed 003
// (burners and a sleeper), Linux 6.18 throttle_cfs_rq_work (kernel work past the
// quota).
package provoke
