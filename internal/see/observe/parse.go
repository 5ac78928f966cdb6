package observe

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// bandwidthLines are the lines of a cgroup that has the cpu controller.
const bandwidthLines = cgroup.LinePeriods | cgroup.LineThrottledPeriods | cgroup.LineThrottled

// parseCounters reads cpu.stat of either version.
func parseCounters(text []byte) (Counters, error) {
	s, err := cgroup.ParseCPUStat(text)
	return Counters{
		HasBandwidth: s.Has(bandwidthLines), Periods: s.Periods, ThrottledPeriods: s.ThrottledPeriods, Throttled: s.Throttled,
		HasUsage: s.Has(cgroup.LineUsage), Usage: s.Usage,
	}, err
}

// parseLocal reads the throttled time of cpu.stat.local.
func parseLocal(text []byte) (time.Duration, error) {
	s, err := cgroup.ParseCPUStat(text)
	if err == nil && !s.Has(cgroup.LineThrottled) {
		err = fmt.Errorf("%w: it has no throttled time", cgroup.ErrFormat)
	}
	return s.Throttled, err
}
