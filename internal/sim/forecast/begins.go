package forecast

import (
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// What a burst, a credit or a longer period has left when a recording begins decides much of what its few periods show. A
// limit that is full then gives a container that always wants more a whole burst that it never had saved.
//
// Worked example: a limit of 1 CPU that is always used up, 6 s recorded. A burst of 1 s in a period of 1 s that began full
// would give 8 s of CPU time in these 6 s. What a time like the recording leaves of it is nothing, and it gives 6 s.

// begins is when periods begin and what limits and credits hold then, by cgroup, where what they save outlasts a recorded period;
// bandwidth.Never: the simulator's choice.
func (l *Load) begins(s *scenario.Scenario, phase []time.Duration, t trial) (phases, holds []time.Duration) {
	rng := rand.New(rand.NewPCG(t.seed, beginsSeed))
	common := time.Duration(rng.Int64N(int64(bandwidth.MaxPeriod)))
	phases, holds = phase, nil
	for i := range min(len(s.Cgroups), len(l.recordedScenario.Cgroups)) {
		c, recorded := &s.Cgroups[i], &l.recordedScenario.Cgroups[i]
		var saving bucket
		next := time.Duration(0)
		switch {
		case i > l.container && i != l.binding: // a part of the container: what came is not all its own
			continue
		case c.Credit > 0:
			saving = creditBucket(c.Cap, c.Credit)
		case !c.Limit.Limited() || c.Limit.Burst == 0 && c.Limit.Period <= recorded.Limit.Period:
			continue
		default:
			saving = quotaBucket(c.Limit)
			if next = simulate.TimeAt(phase, i); next == bandwidth.Never {
				// Before 6.4 all groups of one period begin it together.
				if next = common; s.Host.Rules.RandomPhase() {
					next = time.Duration(rng.Int64N(int64(c.Limit.Period)))
				}
			}
			next %= c.Limit.Period
			if simulate.TimeAt(phases, i) != next {
				phases = withTime(phases, i, next)
			}
		}
		holds = withTime(holds, i, time.Duration(l.offered.left(saving, t.load, next)*float64(time.Second)))
	}
	if holds != nil && !s.Host.Rules.RandomPhase() {
		for i := range s.Cgroups {
			if limit := s.Cgroups[i].Limit; limit.Limited() && simulate.TimeAt(phases, i) == bandwidth.Never {
				phases = withTime(phases, i, common%limit.Period)
			}
		}
	}
	return phases, holds
}

// beginsSeed keeps these draws apart from the simulator's.
const beginsSeed = 2

// withTime is a copy of times with another one at i.
func withTime(times []time.Duration, i int, to time.Duration) []time.Duration {
	copied := make([]time.Duration, max(len(times), i+1))
	for j := range copied {
		copied[j] = simulate.TimeAt(times, j)
	}
	copied[i] = to
	return copied
}

// leftAfter is after how many lengths of the recording a bucket is looked at.
const leftAfter = 20

// left is what a bucket holds, in seconds, after a long time of what came, in which more came by a factor. Its next refill
// is due that much later.
func (o *offered) left(b bucket, factor float64, next time.Duration) float64 {
	if len(o.cpu) == 0 {
		return b.most
	}
	f := b.flow()
	f.level = 0                                        // what always wants more than it gets saves nothing
	f.now = -(leftAfter*len(o.cpu) + int(next/moment)) // so that a refill is due at 0
	for range leftAfter {
		for i, cpu := range o.cpu {
			if o.open != nil {
				cpu += o.open[i]
			}
			f.step(factor * cpu)
		}
	}
	return f.level
}
