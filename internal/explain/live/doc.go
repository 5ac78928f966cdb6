// Package live joins the rooms behind `unthrottle explain`: it records one
// container, or reads a recording, and gives the explanation with what is known
// of its thread pools.
//
// # Problem
//
// The probe tells events, the diagnosis knows rules, the pool table knows
// settings, cgroups know limits. Whoever asks why a container stood still wants
// one answer, also where one of them cannot be had.
//
// # Rule
//
//	target ─► header (limits, CPUs, host, processes)
//	       ─► probe.Record ─► diagnose ─► pools' advice ─► Explanation
//	                      └─► recording.Writer (--record)
//
// Where the kernel refuses BPF, [Live] observes counters for the same time
// instead ([FromCounters]): that tells how much the container stood still and by
// whose quota, not who spent it; what cannot be told is said.
//
// # Worked example
//
// [Live] for 10 s on a container with a limit of 2 CPUs gives the cause "burst",
// 62 of 100 periods throttled, stopped for 5.0 s, and for its pool
// "nioEventLoopGro" the advice to set -Dio.netty.eventLoopThreads=2. The same
// without root gives the cause as far as counters show it, and the note "width:
// the kernel refuses to ...".
//
// # Limits
//
//   - Processes are looked at before the recording begins: those that start
//     later are known by their threads' names only. At most [MaxProcesses].
//   - A JVM is asked for its threads' names only where the user wants it
//     ([Options.AskJVM]): that stops it at a safepoint.
package live
