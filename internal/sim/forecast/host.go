package forecast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/topology"
)

// errEmpty says that a recording has no events.
var errEmpty = errors.New("the recording has no events, so there is nothing to forecast: record while the container works")

// errNoLimit says that no quota limits the container.
var errNoLimit = errors.New("neither the container nor an ancestor has a CPU limit, and every remedy is for one " +
	"('unthrottle explain' says what its threads wait for)")

// usualHZ replaces unknown ticks per second. It is the value of Debian and most other distributions.
const usualHZ = 250

// hostOf returns the recorded machine as a simulated host, with CPUs numbered from 0.
func hostOf(h *recording.Header) (scenario.Host, error) {
	n := h.Host.CPUs.Size()
	if n == 0 || n > scenario.MaxCPUs {
		return scenario.Host{}, fmt.Errorf("the recording's host has %d CPUs: the simulator takes 1 to %d", n, scenario.MaxCPUs)
	}
	rules, err := bandwidth.For(release(h.Host.Kernel))
	if err != nil {
		return scenario.Host{}, fmt.Errorf("the recording's kernel %q: %w", text.Sanitize(h.Host.Kernel, 64), bandwidth.ErrKernel)
	}
	if e := h.Features.SlicesExpire; e != nil && !*e && !rules.Has(bandwidth.Since5_4) {
		rules.Since = bandwidth.Since5_4 // a distribution's kernel that has 5.4's rules
	}
	host := scenario.Host{CPUs: n, HZ: usualHZ, CgroupVersion: 2, Rules: rules, UnthrottleIPI: 2 * time.Microsecond}
	if hz := h.Host.HZ; hz != nil && *hz > 0 && *hz <= 10_000 {
		host.HZ = *hz
	}
	host.Rules.Tick = time.Second / time.Duration(host.HZ)
	if s := h.Host.SliceNS; s != nil {
		if err := host.Rules.Set("sched_cfs_bandwidth_slice", time.Duration(*s)); err != nil {
			return scenario.Host{}, fmt.Errorf("the recording's host: %w", err)
		}
	}
	return host, nil
}

// release drops what distributions add to a release: 6.12.57+deb13-amd64 is 6.12.57.
func release(uname string) string {
	if end := strings.IndexFunc(uname, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		uname = strings.TrimRight(uname[:end], ".")
	}
	if parts := strings.Split(uname, "."); len(parts) > 3 {
		uname = strings.Join(parts[:3], ".")
	}
	return uname
}

// limitOf returns a level's limit.
func limitOf(l *recording.Level) bandwidth.Limit {
	limit := bandwidth.Unlimited()
	limit.Burst = time.Duration(l.BurstNS)
	if l.PeriodNS > 0 {
		limit.Period = time.Duration(l.PeriodNS)
	}
	if l.QuotaNS != nil && *l.QuotaNS > 0 {
		limit.Quota = time.Duration(*l.QuotaNS)
	}
	return limit
}

// coreThreads is how many CPUs a machine's cores have, of those that have most. A pin takes whole cores, as the kubelet with
// full-pcpus-only does: a sibling that others use is no CPU of one's own.
func coreThreads(m *topology.Machine) int {
	most, of := 1, map[topology.ID]int{}
	if m == nil {
		return most
	}
	for _, c := range m.CPUs {
		if c.Online && c.Core != topology.Unknown {
			of[c.Core]++
			most = max(most, of[c.Core])
		}
	}
	return most
}
