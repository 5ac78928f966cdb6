package agreement

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Figure is one of the compared figures.
type Figure string

// The figures.
const (
	ThrottledPeriods Figure = "throttled periods" // of all, 0 to 1
	Use              Figure = "CPU use"           // CPUs
	ThrottledTime    Figure = "throttled time"    // CPU-seconds per second
	P50              Figure = "p50"               // ms
	P95              Figure = "p95"               // ms
)

// Figures in their order.
func Figures() []Figure { return []Figure{ThrottledPeriods, Use, ThrottledTime, P50, P95} }

// Key is one figure of one cgroup or workload.
type Key struct {
	Figure Figure
	Of     string
}

// values are an outcome's figures. NaN: nothing was counted.
func values(o scenario.Outcome) map[Key]float64 {
	all := map[Key]float64{}
	for name, c := range o.Cgroups {
		all[Key{Use, name}] = c.UsageSeconds / o.Seconds
		if c.Periods > 0 {
			all[Key{ThrottledPeriods, name}] = float64(c.ThrottledPeriods) / float64(c.Periods)
			all[Key{ThrottledTime, name}] = c.ThrottledSeconds / o.Seconds
		}
	}
	for name, w := range o.Workloads {
		for figure, v := range map[Figure]*float64{P50: w.P50, P95: w.P95} {
			if v != nil {
				all[Key{figure, name}] = *v
			}
		}
	}
	return all
}

// bound is how far from the real median a simulated one may be.
func bound(f Figure, median float64, tick time.Duration) float64 {
	switch f {
	case ThrottledPeriods:
		return 0.03
	case Use:
		return 0.02 * median
	case ThrottledTime:
		return 0.1 * median
	}
	return math.Max(0.15*median, float64(tick)/1e6)
}
