// Package live joins the packages behind `unthrottle explain`. It records one container, or reads a recording,
// and returns the explanation with the known facts of its thread pools.
//
// # Problem
//
// The probe has events, the diagnosis has rules, the pool table has settings, and cgroups have limits. A user
// who asks why a container was stopped wants one answer, even if one of these is missing.
//
// # Rule
//
//	target ─► header (limits, CPUs, host, processes)
//	       ─► probe.Record ─► diagnose ─► pools' advice ─► Explanation
//	                      └─► recording.Writer (--record)
//
// [Keep] takes the lower way alone: the agent records with the probe that it has open, and explains later.
//
// If the kernel refuses BPF, [Live] observes counters for the same time instead ([FromCounters]). Counters
// show how long which quota stopped the container, not which threads spent it. The explanation says what is
// missing.
//
// # Worked example
//
// [Live] for 10 s on a container with a limit of 2 CPUs gives the cause "burst", 62 of 100 periods throttled,
// stopped for 5.0 s. For its pool "nioEventLoopGro" it gives the advice to set -Dio.netty.eventLoopThreads=2.
// The same without root gives the cause as far as counters show it, and the note "width: the kernel refuses
// to ...".
//
// # Limits
//
//   - Live reads processes before the recording begins. It knows those that start later by their threads'
//     names only. It reads at most 64.
//   - It asks a JVM for its threads' names only if the user wants it ([Options.AskJVM]), because that stops
//     the JVM at a safepoint.
package live
