package agent

import "math/bits"

// When a container gets a remedy: it was stopped above the bound in persist of its last persistWithin rounds, and in the mean of
// them. A single slow second is no reason to move its neighbours, while one that is stopped hard each third second, as by a burst of
// requests, is never stopped in several rounds in a row.
const (
	persist       = 5
	persistWithin = 30
)

// stoppedRounds are the last rounds of a container, since the first of them in which it was stopped above the bound.
type stoppedRounds struct {
	above  uint32 // a bit a round, the newest lowest
	shares [persistWithin]float32
	rounds int // all of them, of which shares has the last ones
}

// with adds a round: the share of it for which quotas stopped the container, and whether that is above the bound.
func (s stoppedRounds) with(share float64, above bool) stoppedRounds {
	s.shares[s.rounds%persistWithin] = float32(share)
	s.rounds++
	s.above <<= 1
	if above {
		s.above |= 1
	}
	s.above &= 1<<persistWithin - 1
	return s
}

// seen tells whether any of the last rounds was above the bound.
func (s *stoppedRounds) seen() bool { return s.above != 0 }

// persistent tells whether they are reason enough for a remedy.
//
// Worked example: of a container that is stopped for 80 ms in each third second, the mean over 30 s is 27 ms a second. At a bound of
// 10 ms it is persistent after 13 s, with the fifth such second.
func (s *stoppedRounds) persistent(bound float64) bool {
	if bits.OnesCount32(s.above) < persist {
		return false
	}
	sum := float32(0)
	for _, share := range s.shares {
		sum += share
	}
	return float64(sum)/float64(min(s.rounds, persistWithin)) >= bound
}
