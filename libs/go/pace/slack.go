package pace

import "time"

// Slack learns how much of a quota must stay unused so that the kernel does not stop the process: what CPUs keep of their slices, how late
// CPU time is read, and what a collector or a compiler takes that nobody asks for. It doubles after a stop, and shrinks
// by a part while work
// is held back without one. So about one period in 20 of those ends in a stop, which is short: it begins where the quota was to end.
type Slack struct{ kept, least, most time.Duration }

const (
	// slice is sched_cfs_bandwidth_slice_us: a CPU may keep so much quota from the others for a while.
	slice = 5 * time.Millisecond
	// shrinks is the part by which slack shrinks in a period: 23 periods halve it.
	shrinks = 0.03
	// A hundredth of the quota is always kept, a sixth at most: what needs more is not the work that is held back.
	leastPart, mostPart = 100, 6
)

// Restart begins with a slice for another quota.
func (s *Slack) Restart(quota time.Duration) {
	*s = Slack{kept: min(slice, quota/8), least: quota / leastPart, most: quota / mostPart}
}

// Kept is what is to stay unused.
func (s *Slack) Kept() time.Duration { return s.kept }

// Learn takes what the kernel counted since the last call: periods, and those in which it stopped the process. held: work was held back
// meanwhile; where none was, nothing is learnt.
func (s *Slack) Learn(periods, stopped uint64, held bool) {
	if !held {
		return
	}
	if stopped > 0 {
		s.kept = min(2*s.kept, s.most)
		return
	}
	for range min(periods, 100) {
		s.kept -= time.Duration(shrinks * float64(s.kept))
	}
	s.kept = max(s.kept, s.least)
}
