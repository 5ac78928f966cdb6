// Package flightrecorder keeps what happened to containers in the last hour, for questions that come later.
//
// # Problem
//
// Users ask about throttling hours later. By then the counters' history is a line of averages, and the threads are
// gone.
//
// # Rule
//
// The package keeps two things in a bounded space:
//
//   - [Recorder] keeps the last hour of periods, 8 bytes each, of the [Slots] containers that were stopped most. It
//     takes at most [MaxBytes] and flushes to files, so that a crash of the agent loses seconds.
//   - [Store] keeps recordings of ten seconds. The agent makes one when a container's stopped time passes a bound.
//     Number and bytes are bounded, and the oldest go first.
//
// Both report what they dropped.
package flightrecorder

const (
	// Slots is the number of containers whose periods are kept.
	Slots = 16
	// MaxBytes bounds the periods in memory; the files take as much again.
	MaxBytes = 8 << 20
	// ringRows is how many rows a container has: an hour of periods of 56 ms. Shorter periods are joined to that
	// length, so that an hour fits with any period.
	ringRows = (MaxBytes/Slots - headerBytes) / rowBytes
	// keptFor is how far back the rows of a container without a pause reach.
	keptFor = 3600_000 // ms

	rowBytes    = 8
	headerBytes = 4096
)
