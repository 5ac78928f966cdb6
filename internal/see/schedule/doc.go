// Package schedule reads the events of a recording into what each thread of the container does, who holds each CPU, and the requests on
// each connection. It is the one place that knows what an event does to them; diagnosis, requests, roles and forecasts are told of the
// changes and count what they need.
//
// # Problem
//
// An event says that one thing happened. Whether a thread sleeps, waits or is held back follows from all events before, and events may
// contradict each other: the recording lost some, or the kernel left one out (Linux 6.18 leaves out one switch in a thousand).
//
// # Rules
//
//   - The last event that names the holder of a CPU counts, and all other state gives way. A thread that was thought to hold that CPU
//     sleeps. A thread that runs or ran elsewhere had been moved there while it wanted a CPU.
//   - A thread that is not known sleeps. A wake-up of a thread that wants a CPU already is spurious.
//   - A quota holds a thread back from a switch, a wake-up or a Hold event with that mark until a Release, or until it runs or sleeps.
//   - A thread that exits while it runs ends with its last switch.
//
// Memory is bounded whatever the events say.
package schedule
