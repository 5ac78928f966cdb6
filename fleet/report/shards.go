package report

import (
	"maps"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// shards is a service as so many times as many containers, on the hosts that it has now; nil: that is not known, or cannot be.
func (s *sum) shards(n *need, fail int, times float64) *view.Shards {
	now := s.sized + s.young
	containers := int(math.Ceil(times * float64(now)))
	if n == nil || s.unknown > s.young || containers == now {
		return nil
	}
	// As even as can be: the fullest hosts have one more than the others.
	on := map[string]int{}
	names := slices.Collect(maps.Keys(s.on))
	for i := range containers {
		on[names[i%len(names)]]++
	}
	load, ok := survives(on, fail)
	if !ok {
		return nil
	}
	of := n.lower
	if remedy, _ := s.remedy(); remedy == view.Burst {
		of = n.burst
	}
	whole := leastlimit.Tenths
	if s.pinned {
		whole = leastlimit.Whole
	}
	// Each does what so many do now. None needs more than these together, and a part no more than the whole.
	each := float64(now) / float64(containers)
	at := leastlimit.Merged(of.at, n.mean, each, n.twice)
	mean := min(n.mean, of.low)
	low := min(at, max(each*mean, (1-leastlimit.MergedOff)*leastlimit.Merged(of.low, mean, each, n.twice)))
	high := max(at, min((1+leastlimit.MergedOff)*leastlimit.Merged(of.high, n.mean, each, n.twice), max(1, each)*of.high))
	limit := func(cpus float64) float64 { return whole(load * cpus) }
	cores := func(cpus float64) float64 { return rounded(float64(containers) * limit(cpus)) }
	return &view.Shards{Containers: containers, Limit: rounded(limit(at)), Cores: cores(at), CoresLow: cores(low), CoresHigh: cores(high)}
}
