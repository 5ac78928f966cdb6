// Package provoke makes each cause of throttling happen for real. It starts processes
// whose threads have names and rhythms, in cgroups that a scenario describes.
//
// # Problem
//
// A diagnosis is right only if it names the true cause. A test therefore needs a
// program that does exactly one thing to the real kernel, and can leave it out.
//
// # Rule
//
// A [Spec] is one process: pools of threads, each with a name (prctl(2),
// PR_SET_NAME), an amount of CPU time per run, and a rhythm. A run costs the same CPU
// time however often the kernel interrupts it ([workload.BurnFor]). Interruptions only
// make it longer. A pool leaves out a run that is due while the one before still goes
// on, so that it never builds up a queue. The process is this very program started
// again (package child), and it ends with its parent.
//
// A [Scenario] is cgroups with limits and CPUs, and processes in them. One of the
// cgroups is the target. [Causes] are the scenarios that provoke one cause each.
//
// # Worked example
//
// A pool has 8 threads, Work 10 ms, Every 250 ms and Together true. Its limit is 0.6
// CPUs on 2 CPUs. Every quarter of a second 8 threads wake and want 80 ms together.
// Two wide they spend the quota of 60 ms in 30 ms, and the quota stops them for 70 ms.
// On average they want 0.32 CPUs, 53 % of the limit.
//
// # Limits
//
//   - User work only counts: it touches no memory. Kernel work reads /dev/urandom in
//     one system call per run. The process calibrates its length at the start, so that
//     it is off by later changes of the CPU's speed.
//   - The Go runtime has a few threads of its own in each process. They bear the name
//     of its first pool. [child.Process.Hold] stops the one that would run all the
//     time: it took a tenth of a slow machine's CPU time.
//
// Sources: seed 000 (bursts), seed 001 (one thread, a tiny limit), seed 003
// (burners and a sleeper), Linux 6.18 throttle_cfs_rq_work (kernel work past the
// quota).
package provoke
