// Package perfetto writes a recording's schedule as a trace that ui.perfetto.dev and chrome://tracing show.
//
// # Problem
//
// An explanation sums up. Whoever looks for one slow request wants to see each thread beside the others, at one moment.
//
// # Rule
//
// The form is the trace event format in JSON (Trace Event Format, the "JSON Object Format"), since both viewers and many tools read it. A
// process has a track per thread, with a slice per spell: running, waiting for a CPU, or held back by a quota. The container is a
// process of its own above them, with a slice per stop of each quota, and with counters: threads that run, and that run or are runnable.
// Slices are written as they end, so that memory is bounded; viewers put them in order.
//
// # Worked example
//
//	{"ph":"X","pid":71,"tid":75,"ts":45000.000,"dur":55000.000,"name":"held back by a quota","args":{"cgroup":"/cart"}}
//
// is a thread that a quota held back from 45 to 100 ms after the beginning.
//
// # Limits
//
// Times count from the recording's beginning, of which otherData has the wall clock. A thread has the name that it had last.
package perfetto
