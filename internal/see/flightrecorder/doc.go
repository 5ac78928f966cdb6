// Package flightrecorder is the flight recorder: what happened last night, although
// nobody was looking.
//
// # Problem
//
// Throttling is asked about hours later, when the counters' history is a line
// of averages and the threads are gone.
//
// # Rule
//
// Two things are kept in a bounded space. The last hour of periods, 8 bytes
// each, of the [Slots] containers that stood still most: [Recorder], in at most
// [MaxBytes], flushed to files so that a crash of the agent loses seconds. And
// recordings of ten seconds, made by themselves when a container's stopped time
// passes a bound: [Store], bounded in number and bytes, the oldest go first.
// What was dropped is told.
package flightrecorder

const (
	// Slots is how many containers' periods are kept.
	Slots = 16
	// MaxBytes bounds the periods kept in memory, and on disk as much again.
	MaxBytes = 8 << 20
	// ringRows is how many rows a container has: an hour of periods of 56 ms. Shorter periods are joined until they
	// are as long, so that an hour is kept whatever the period.
	ringRows = (MaxBytes/Slots - headerBytes) / rowBytes
	// KeptFor is how far back the rows of a container without a pause reach.
	KeptFor = 3600_000 // ms

	rowBytes    = 8
	headerBytes = 4096
)
