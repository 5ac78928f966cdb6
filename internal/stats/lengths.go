package stats

import (
	"math/bits"
	"time"
)

const (
	// shortest and longest bound the lengths that are told apart: 2^shortest and 2^longest us, 16 us and 67 s.
	shortest, longest = 4, 26
	lengthsApart      = 2*(longest-shortest) + 1
)

// Length says how many times were at most UpTo, and longer than the length before.
type Length struct {
	UpTo  time.Duration
	Count int
}

// Lengths counts times by how long they are. The lengths told apart are powers of two of microseconds, and the middle between each two: a
// time is at most its length, and more than two thirds of it. Lengths of several stretches of time add up.
type Lengths [lengthsApart]int

// Add counts so many times of a length. Those below 1 us count for nothing.
func (l *Lengths) Add(d time.Duration, count int) {
	if us := d.Microseconds(); us > 0 && count > 0 {
		l[lengthOf(us)] += count
	}
}

// lengthOf is the index of the least length that is not shorter.
func lengthOf(us int64) int {
	if us <= 1<<shortest {
		return 0
	}
	power := bits.Len64(uint64(us - 1)) // us is at most 2^power, and more than half of that
	i := 2 * (power - shortest)
	if us <= 3<<(power-2) {
		i--
	}
	return min(i, lengthsApart-1)
}

// All has the lengths that any time had, the shortest first.
func (l *Lengths) All() (lengths []Length) {
	for i, n := range l {
		us := int64(1) << (shortest + i/2)
		if i%2 == 1 {
			us += us / 2
		}
		if n > 0 {
			lengths = append(lengths, Length{time.Duration(us) * time.Microsecond, n})
		}
	}
	return lengths
}
