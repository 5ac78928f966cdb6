package report

import (
	"maps"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// shards is a service as so many times as many containers, on the hosts that it has now; nil: that is not known, or
// cannot be, or prices tell it.
func (s *service) shards(fail int, times float64) *view.Shards {
	now := s.sized + s.young
	containers := int(math.Ceil(times * float64(now)))
	if len(s.groups) != 1 || s.priced > 0 || s.unknown > s.young || containers == now {
		return nil
	}
	load, ok := s.survivesAs(containers, fail)
	if !ok {
		return nil
	}
	whole := leastlimit.Tenths
	if s.pinned {
		whole = leastlimit.Whole
	}
	// Each does what so many do now. None needs more than these together, and a part no more than the whole.
	today := s.groups[0].chosen.limit
	mean, each := s.need.mean, float64(now)/float64(containers)
	merged := func(limit, mean float64) float64 { return leastlimit.Merged(limit, mean, each, s.need.twice) }
	cpus := merged(today.cpus, mean)
	leastMean := min(mean, today.low)
	low := min(cpus, max(each*leastMean, (1-leastlimit.MergedOff)*merged(today.low, leastMean)))
	high := max(cpus, min((1+leastlimit.MergedOff)*merged(today.high, mean), max(1, each)*today.high))
	limit := func(cpus float64) float64 { return whole(load * cpus) }
	cores := func(cpus float64) float64 { return rounded(float64(containers) * limit(cpus)) }
	return &view.Shards{
		Containers: containers, Limit: rounded(limit(cpus)),
		Cores: cores(cpus), CoresLow: cores(low), CoresHigh: cores(high),
	}
}

// spread is so many containers on its hosts, as even as can be: the fullest have one more than the others.
func (s *service) spread(containers int) map[string]int {
	on := map[string]int{}
	names := slices.Collect(maps.Keys(s.on))
	for i := range containers {
		on[names[i%len(names)]]++
	}
	return on
}
