package workload

import "time"

// away is from how long on a thread that computes was not running, or may not have
// been: interrupts are shorter, and turns of others longer.
const away = 20 * time.Microsecond

// began is a moment to count from without a system call.
var began = time.Now()

// BurnFor computes until the calling thread has used d of CPU time, so that neither a
// wait nor a stop counts as work. It continues the computation of x. After each so
// many rounds it reads the clock and calls between, unless that is nil.
//
// Time passes by the monotonic clock, read without a system call, and the thread's
// own clock is asked only after it was away. Ordinary programs do not read their CPU
// time all the time. The kernel throttles one that does as soon as its quota ends,
// and others only at the next tick.
func BurnFor(d time.Duration, x uint64, rounds int, between func()) uint64 {
	from := ThreadTime()
	used, last := time.Duration(0), time.Since(began)
	for used < d {
		x = Compute(x, rounds)
		if between != nil {
			between()
		}
		now := time.Since(began)
		if step := now - last; step < away {
			used += step
		} else {
			used = ThreadTime() - from
			now = time.Since(began)
		}
		last = now
	}
	return x
}

// Compute makes so many rounds of arithmetic, of which the next needs the last.
func Compute(x uint64, rounds int) uint64 {
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
