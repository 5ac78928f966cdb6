package forecast

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/scenario"
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
	binding.Limit, _ = scenario.Shortened(binding.Limit, scenario.NarrowPeriod)
}
