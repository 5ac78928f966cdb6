package agreement

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Over names the cgroups that used more than their quota can give. The quota gives a
// refill at the start and at each boundary of a period, and the burst. Each CPU may
// add a slice and the tick that notices its end. It holds on any kernel and on any
// host, however busy.
func Over(s *scenario.Scenario, o scenario.Outcome) (all []string) {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		if !c.Limit.Limited() {
			continue
		}
		seconds := time.Duration(o.Seconds * 1e9)
		refills := seconds/c.Limit.Period + 2
		perCPU := s.Host.Rules.Slice
		if s.Host.HZ > 0 {
			perCPU += time.Second / time.Duration(s.Host.HZ)
		}
		most := refills*c.Limit.Quota + c.Limit.Burst + time.Duration(s.Host.CPUs)*perCPU
		if used := time.Duration(o.Cgroups[c.Name].UsageSeconds * 1e9); used > most {
			all = append(all, fmt.Sprintf("%s used %v in %v, above %v", c.Name, used, seconds, most))
		}
	}
	return all
}
