package observe

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

const (
	// turnRounds is the number of rounds after which a file is read in any case: a write through another mount of the
	// cgroup file system, for example from a container with cgroups of its own, makes no event for us.
	turnRounds = 10
	// settle is how long a container must have been idle at a reading, for that reading to be its last. The longest
	// period is a second (max_cfs_quota_period, kernel/sched/core.c), and its timer ends after at most two without use.
	settle = 2 * time.Second
)

// turn reports whether a level's files are read in this round in any case. Levels take turns.
func (s *Sampler) turn(l *level) bool { return (s.round+l.number)%turnRounds == 0 }

// limitHolds reports whether a level's limit is that of the last reading. Levels above the scope make no events.
func (s *Sampler) limitHolds(l *level) bool {
	return s.unwritten && l.raw != nil && !s.turn(l) && cgroup.Below(l.path, s.scope)
}

// rests reports whether a container's own counters are those of the last reading: since then nothing of it ran, wanted a
// CPU or was held back, as the probe counts it, and no period of its quota ended. A container with others below it never
// rests: the probe counts those apart, but its own counters hold them.
func (s *Sampler) rests(own *level, c *counts.Counts, now time.Time) bool {
	if c == nil || own.above+1 >= s.round || own.readAt.IsZero() || own.statErr != nil || !s.limitHolds(own) {
		return false
	}
	return time.Duration(c.IdleNS) > now.Sub(own.readAt)+settle
}
