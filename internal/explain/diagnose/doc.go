// Package diagnose says why a container stood still: from a recording, or its events as they come, to causes, ranked, each
// with the evidence that decides it.
//
// # Problem
//
// "62 % of periods were throttled" names no cause: a pool that is too wide for some milliseconds, a quota smaller than one
// request's work, too little CPU altogether, a sibling that spent the pod's quota and a kernel that loses some all read the
// same. They differ in who ran and who waited for what, when; a recording knows both.
//
// # Rule
//
//	a := diagnose.New(header, diagnose.Options{})
//	a.Add(&event)                 // one by one; memory has a bound
//	e := a.Finish(footer)         // Explanation
//
// Width is how many CPUs were told to hold a thread of the container; wanted how many threads run or wait. Both are
// weighted by time, never sampled. A thread that waits is held back by a quota (its own, or an ancestor's), or waits for
// the CPU on which it is queued: for an idle one that it may use (n waiting threads and m idle CPUs: m/n of each one's
// waiting), else for whoever holds it, of which steal is a share. The parts add up to wanted less width, exactly.
//
// Then each cause judges the figures by itself (cause_*.go): thresholds with their reasons stand there. What cost most
// time comes first: stopped time and waiting for quotas, against waiting for others, against waiting for each other; among
// causes of stopped time, the one that explains the others (rank in causes.go).
//
// # Worked example
//
// A limit of 0.5 CPUs in periods of 100 ms; 8 threads wake up together every 200 ms with 8 ms of work each. They run 8
// wide and spend the 50 ms in 6.3 ms, all wait for the rest of the period, and finish in the next one. Mean use is 64 % of
// the limit and wanted is back at 0 in between: "burst", not "shortage".
//
// # Limits
//
//   - Waiting stolen by the hypervisor is told from the steal of the whole recording: no event says when it was.
//   - A thread bound to fewer CPUs than the container is known to be only if it was there when the recording began.
//   - What happened while events were lost is wrong until the next event of that CPU; the verdict says that they were.
package diagnose
