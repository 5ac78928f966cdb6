package forecast

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// narrowInside narrows a container by a cpuset, where the quota that binds is an ancestor's, such as a pod's. What runs beside
// the container keeps its CPUs and goes on spending that quota, so that it stays: in short periods, or with a burst.
func narrowInside(s *scenario.Scenario, at Cgroups, r Remedy) {
	binding := &s.Cgroups[at.Binding]
	cpus := binding.Limit.CPUs()
	width := r.CPUs
	if width == 0 {
		width = int(math.Ceil(cpus))
	}
	s.Cgroups[at.Container].Width = width
	if r.Burst > 0 {
		binding.Limit.Burst = min(r.Burst, binding.Limit.Quota)
		return
	}
	least := time.Duration(math.Ceil(float64(bandwidth.MinQuota)/cpus/float64(time.Millisecond))) * time.Millisecond
	if period := max(scenario.NarrowPeriod, least); period < binding.Limit.Period {
		binding.Limit.Quota = time.Duration(cpus * float64(period)).Round(time.Microsecond)
		binding.Limit.Burst = min(binding.Limit.Burst, binding.Limit.Quota)
		binding.Limit.Period = period
	}
}
