// Package diagnose says why a quota or other threads stopped a container. From the events of a recording it
// makes causes, ranked, each with the evidence that decides it.
//
// # Problem
//
// "62 % of periods were throttled" names no cause. These all read the same: a pool that is too wide for some
// milliseconds, a quota smaller than one request's work, too little CPU altogether, a sibling that spent the
// pod's quota, and a kernel that loses quota. They differ in which threads ran and what the others waited
// for. A recording has both.
//
// # Rule
//
//	a := diagnose.New(header, diagnose.Options{})
//	a.Add(&event)                 // one by one; memory is bounded
//	e := a.Finish(footer)         // Explanation
//
// Width is the number of CPUs whose holder is a thread of the container; wanted is the number of threads that
// run or wait. Both are weighted by time, never sampled. A waiting thread is either held back by a quota (its
// own, or an ancestor's), or waits for the CPU on whose queue it is. In the second case it waits for an idle
// CPU that it may use (n waiting threads and m idle CPUs: m/n of each one's waiting), else for the holder of
// its CPU. A share of that is steal. The parts add up to wanted less width, exactly.
//
// Each cause then judges the figures by itself (cause_*.go); its thresholds have their reasons there. The
// cause that cost the most time comes first. The costs are stopped time and waiting for quotas, waiting for
// others, and waiting for each other. Among causes of stopped time, the cause that explains the others comes
// first (rank in causes.go).
//
// # Worked example
//
// A limit of 0.5 CPUs in periods of 100 ms. Every 200 ms 8 threads wake up together with 8 ms of work each.
// They run 8 wide and spend the 50 ms in 6.3 ms, wait for the rest of the period, and finish in the next one.
// Mean use is 64 % of the limit and wanted is back at 0 in between: the cause is "burst", not "shortage".
//
// # Limits
//
//   - The steal of the whole recording gives the waiting for the hypervisor: no event says when steal was.
//   - The analysis knows the affinity of a thread only if it was there when the recording began.
//   - Lost events make a CPU's state wrong until its next event; the verdict says that events were lost.
package diagnose
