// Package recording is Recording v1: one container's exact schedule over some seconds, with what the rest of the host
// did meanwhile.
//
// # Problem
//
// Counters say that a quota stopped a container, not which threads spent the quota. The kernel's scheduling events do.
// A tool that asks a second question later (which remedy would have helped?) needs the events themselves, not a
// summary.
//
// # Rule
//
// A recording has three parts. The header is the state at the start. Events follow in the order of their time. The
// footer has what only the end shows. Events name each thread of the container. For every other holder of a CPU they
// name the owner: another container, a process outside any container, the kernel, or the idle CPU. Every figure that an
// explanation prints can be computed from a recording alone.
//
// # Limits
//
// A recording lacks lost events and unseen switches; the footer counts both. docs/reference/recording.md describes the
// format and its bounds.
package recording
