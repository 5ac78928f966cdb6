// Package threads runs one workload of a scenario for real. Its threads burn CPU
// time, run and sleep in turn, sleep and measure it, or stay in long system calls.
//
// # Problem
//
// The kernel must see what the scenario describes: so many threads, so much CPU time
// per run, wake-ups when they are due. The measured times must not depend on the
// parent, nor on when a quota lets the threads report them.
//
// # Rule
//
// The process makes all threads before the beginning, and they wait. A run ends when
// its thread has had its CPU time ([workload.BurnFor]), so that a stop is no work. The
// latency of a run counts from the time at which its sleep was due to end. A run that
// ends after the scenario's end counts as unfinished.
//
// Sleeps and clocks are raw system calls, past the Go runtime. [child.Process.Hold]
// stops the thread of the runtime that would interrupt them.
//
// # Worked example
//
// A thread runs 2 ms and sleeps 10 ms. Its sleep ends while the quota of its cgroup is
// spent for another 30 ms. The thread then runs 30 ms late, and its run takes 32 ms.
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
