// Package recording is Recording v1: one container's exact schedule over some
// seconds, with what the rest of the host did meanwhile.
//
// # Problem
//
// Counters say that a container stood still, not who spent its quota. The
// kernel's scheduling events do, but a tool that asks a second question later
// (which remedy would have helped?) needs the events themselves, not a summary.
//
// # Rule
//
// A recording is a header (what was in force when it began), events in the order
// of their time, and a footer (what only the end can tell). The container's
// threads are told one by one; everything else that held a CPU is told by its
// owner: another container, a process outside any container, the kernel, nobody.
// Every figure that an explanation prints can be computed from a recording alone.
package recording
