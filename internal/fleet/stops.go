package fleet

import (
	"math/bits"
	"time"
)

// Stop says in how many periods of its own quota a container was stopped for up to Microseconds, and for longer than the length before.
type Stop struct {
	Microseconds int64 `parquet:"microseconds,dict"`
	Periods      int32 `parquet:"periods,dict"`
}

const (
	// shortestStop and longestStop bound the lengths that are told apart: a period is at most a second. 2^shortestStop and 2^longestStop us.
	shortestStop, longestStop = 7, 20
	stopLengths               = 2*(longestStop-shortestStop) + 1
)

// Stops counts periods by how long a container was stopped in them. The lengths are powers of two in microseconds, from 128 to 1048576, and
// the middle between each two.
type Stops [stopLengths]int32

// Add counts a period. One without a stop counts for nothing.
func (s *Stops) Add(stopped time.Duration) {
	if us := stopped.Microseconds(); us > 0 {
		s[stopLength(us)]++
	}
}

// stopLength is the index of the least length that is not shorter.
func stopLength(us int64) int {
	if us <= 1<<shortestStop {
		return 0
	}
	power := bits.Len64(uint64(us - 1)) // us is at most 2^power, and more than half of that
	i := 2 * (power - shortestStop)
	if us <= 3<<(power-2) {
		i--
	}
	return min(i, stopLengths-1)
}

// List has the lengths that any period had.
func (s *Stops) List() (all []Stop) {
	for i, n := range s {
		length := int64(1) << (shortestStop + i/2)
		if i%2 == 1 {
			length += length / 2
		}
		if n > 0 {
			all = append(all, Stop{length, n})
		}
	}
	return all
}
