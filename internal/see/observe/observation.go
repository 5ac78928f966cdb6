package observe

import (
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Values of Observation.ThrottledBy beside a cgroup path and "" (nothing was throttled, or it was not measured).
const (
	// BySelf: the container's own quota cost most.
	BySelf = "self"
	// ByUnknown: an ancestor's quota held it back, but no level that we can see accounts for it.
	ByUnknown = "unknown"
)

// Observation is what one container experienced over one window (Observation v1). Pointers are nil where a thing was
// not measured; NotMeasured then says what and why. Nothing in it is a rate: divide by Window.
type Observation struct {
	Container container.Container
	// CgroupID is the inode of its folder in the cpu controller's hierarchy; 0: not known (it is asked for only where a
	// probe counts).
	CgroupID uint64
	// Start and Window: the time between two readings of the counters. Window is 0 where there was no pair of
	// readings of the same cgroup.
	Start  time.Time
	Window time.Duration
	// CPUsAllowed are the CPUs of its cpuset that are online; empty: not measured.
	CPUsAllowed cpuset.CPUSet
	// Levels are the limits at the end of the window: its own first, then each ancestor's up to the root.
	Levels []cgroup.Level
	// LimitCPUs is the effective limit, the least along Levels, and LimitAt the level that sets it; nil: no limit.
	LimitCPUs *float64
	LimitAt   string
	// UsedCPUs is CPU time used / window.
	UsedCPUs *float64
	// Periods and ThrottledPeriods are those of its own quota (nr_periods, nr_throttled).
	Periods, ThrottledPeriods *uint64
	// ThrottledSeconds is cpu.stat.local: throttled by its own or an ancestor's quota, a sum over CPUs; nil where the
	// kernel has no such file (before 6.6). OwnThrottledSeconds is cpu.stat's throttled time: its own quota only,
	// a sum over CPUs as well.
	ThrottledSeconds, OwnThrottledSeconds *float64
	// StoppedLow and StoppedHigh bound the stopped time, wall time, within the window; see Stopped.
	StoppedLow, StoppedHigh *time.Duration
	// StoppedExact: the probe measured stopped time, and the two are equal. They are equal where the probe counted late by
	// no more than a thousandth of the window; else they are apart by twice what was late, and StoppedExact is false.
	// StoppedSpells is in how many spells the probe counted it.
	StoppedExact  bool
	StoppedSpells *uint64
	// Width[i] is how long i CPUs ran it at once, Wanted[i] how long i of its threads ran or were runnable, from the
	// kernel's own scheduling events; together they are the window. nil: there is no probe.
	Width, Wanted []time.Duration
	// ThrottledBy is BySelf, the path of the level that cost most, ByUnknown, or "".
	ThrottledBy string
	// ThrottledByAll are the levels that cost something, most first. Seconds are sums over CPUs.
	ThrottledByAll []Share
	// Cells is the window in steps of a tenth of a second, as far as it was read that finely: only for cgroups that
	// were stopped within the last ten seconds, and only by a Watcher. Empty: not read.
	Cells []Cell
	// NotMeasured says what could not be measured and why, "cpu.stat.local: ...", at most maxNotMeasured entries.
	NotMeasured []string
}

// Share is one level's part in a container's throttled time.
type Share struct {
	Path    string
	Seconds float64
}

// Cell is the throttled time, a sum over CPUs, that ended within one step of the window: the container's own and that
// of all ancestors with a quota (which other children of theirs may have had a part in).
type Cell struct {
	End       time.Duration // since Observation.Start
	Throttled time.Duration
}

// StoppedPerSecond is the stopped time as a share of the window, 0 to 1; ok is false where it was not measured.
func (o Observation) StoppedPerSecond() (low, high float64, ok bool) {
	if o.StoppedLow == nil || o.StoppedHigh == nil || o.Window <= 0 {
		return 0, 0, false
	}
	return o.StoppedLow.Seconds() / o.Window.Seconds(), o.StoppedHigh.Seconds() / o.Window.Seconds(), true
}

// Above says whether the stopped time may be above the bound, a share of the window (0.05: 50 ms in a second). It
// judges by StoppedHigh: on kernels without cpu.stat.local the lower bound is always 0 and would find nothing. ok is
// false where stopped time was not measured.
func (o Observation) Above(bound float64) (above, ok bool) {
	_, high, ok := o.StoppedPerSecond()
	return ok && high > bound, ok
}

// ThrottledRatio is throttled periods / periods of its own quota, 0 to 1; ok is false where there were none or they
// were not measured. It says how often, not how long: never judge by it alone.
func (o Observation) ThrottledRatio() (ratio float64, ok bool) {
	if o.Periods == nil || o.ThrottledPeriods == nil || *o.Periods == 0 {
		return 0, false
	}
	return float64(*o.ThrottledPeriods) / float64(*o.Periods), true
}
