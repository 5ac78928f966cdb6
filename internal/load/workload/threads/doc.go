// Package threads runs one workload of a scenario for real: a process whose
// threads burn, run and sleep in turn, sleep and measure it, or stay in long
// system calls.
//
// # Problem
//
// What a scenario says of threads must be what the kernel sees: so many threads,
// so much CPU time per run, wake-ups when they are due. And what they measure of
// themselves must not depend on when their parent, or a quota, lets them tell.
//
// # Rule
//
// All threads are made before the beginning and wait. A run ends when the thread has
// had its CPU time ([workload.BurnFor]), so that being stopped is no work. A run's latency counts
// from when its sleep was due to end; what ends after the scenario's end is not
// counted but unfinished. Sleeps and clocks are raw system calls: nothing of the
// Go runtime lies between, and the runtime's own thread that would interrupt them
// is held.
//
// # Worked example
//
// sleep-run, run 2 ms, sleep 10 ms, in a cgroup whose quota is gone for another
// 30 ms when the sleep ends: the thread runs 30 ms late, the run counts as 32 ms.
//
// # Limits
//
// At most [MaxThreads] threads. Latencies are kept within 1 %, in steps of 1 µs;
// the maximum is exact. A wake-up's timer slack counts as latency, as do the
// kernel's own few µs.
//
// Sources: clock_nanosleep(2), prctl(2) (PR_SET_NAME, PR_SET_TIMERSLACK), zero(4);
// fibtest, as seed 001 describes it.
package threads
