package service

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// roundsPerLook is how many rounds pass between two readings of the clock, about 5
// µs: small against a request, large against the reading (0.3 µs).
const roundsPerLook = 10_000

// sink takes what threads compute, so that no compiler drops the work.
var sink atomic.Uint64

// burn computes until the calling thread has used d of CPU time, so that neither a
// wait nor a stop counts as work. It stops for collections of pausing, unless that is
// nil.
func burn(d time.Duration, pausing *world) {
	var between func()
	if pausing != nil {
		between = pausing.safepoint
	}
	if x := workload.BurnFor(d, 1, roundsPerLook, between); x == 0 {
		sink.Store(x)
	}
}

// mix makes well-mixed bits of a number (the finalizer of SplitMix64: Steele,
// Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// maxTail bounds an exponential draw to this many means: beyond it lies one of
// 10^8.
const maxTail = 18

// draw is the distribution's value for random bits: the same bits mean the same work
// for every try, on any thread.
func draw(d scenario.Duration, bits uint64) time.Duration {
	u := (float64(bits>>11) + 0.5) / (1 << 53) // above 0, below 1
	switch d.Shape {
	case scenario.Exponential:
		return time.Duration(float64(d.Mean) * min(maxTail, -math.Log(u)))
	case scenario.Uniform:
		return d.Low + time.Duration(u*float64(d.High-d.Low))
	}
	return d.Mean
}
