package threads

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// roundsPerLook is how many rounds pass between two readings of the clock, about 0.5
// µs. A run of fibtest takes a few µs.
const roundsPerLook = 1000

// draw takes a time from a distribution.
func draw(d scenario.Duration, chance *rand.Rand) time.Duration {
	switch d.Shape {
	case scenario.Exponential:
		return time.Duration(chance.ExpFloat64() * float64(d.Mean))
	case scenario.Uniform:
		return d.Low + time.Duration(chance.Int64N(int64(d.High-d.Low)+1))
	}
	return d.Mean
}

// setTimerSlack is how late the kernel may end the calling thread's sleeps.
func setTimerSlack(d time.Duration) {
	// 0 would mean the default.
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(max(1, d)), 0)
}

// pinTo lets the calling thread run on one CPU only.
func pinTo(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set)
}
