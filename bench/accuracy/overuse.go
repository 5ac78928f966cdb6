package accuracy

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// Over names the cgroups that used more than their quota can give: as many
// refills as the time has boundaries of periods and the one at the start, the
// burst, and per CPU a slice and the tick that finds it used up. It holds on any
// kernel and on any host, however busy.
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
