package observe

import (
	"math"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Values of Observation.ThrottledBy other than a cgroup path and "". "" means not throttled or not measured.
const (
	// BySelf means that the container's own quota cost most.
	BySelf = "self"
	// ByUnknown means that an ancestor's quota held the container back, but no visible level accounts for it.
	ByUnknown = "unknown"
)

// Observation is what one container experienced over one window (Observation v1). A nil pointer means not measured;
// NotMeasured then says what and why. No field is a rate: divide by Window.
type Observation struct {
	Container container.Container
	// CgroupID is the inode of the container's folder in the cpu controller's hierarchy. 0 means not known: only a
	// probe needs it.
	CgroupID uint64
	// Start and Window are the time between two readings of the counters. Window is 0 without two readings of the same
	// cgroup.
	Start  time.Time
	Window time.Duration
	// CPUsAllowed are the online CPUs of the container's cpuset; empty means not measured.
	CPUsAllowed cpuset.CPUSet
	// CPUsOnline is how many CPUs the machine has online; 0 means not measured.
	CPUsOnline int
	// Levels are the limits at the end of the window: the container's own first, then each ancestor's up to the root.
	Levels []cgroup.Level
	// LimitChanges are the limits along Levels that differ between the two ends of the window.
	LimitChanges []recording.LimitChange
	// LimitCPUs is the effective limit, the least along Levels; nil means no limit. LimitAt is the level that sets it.
	LimitCPUs *float64
	LimitAt   string
	// UsedCPUs is CPU time used / window.
	UsedCPUs *float64
	// Periods and ThrottledPeriods count those of the container's own quota (nr_periods, nr_throttled).
	Periods, ThrottledPeriods *uint64
	// ThrottledBefore is the share of the periods that were throttled from the making of the cgroup to the start of the
	// window, 0 to 1: the highest of its own level and the levels above. nil means not measured, or that no period ended.
	ThrottledBefore *float64
	// ThrottledSeconds is the gain of cpu.stat.local: throttled by the own or an ancestor's quota, a sum over CPUs. It
	// is nil on kernels before 6.6, which have no such file. OwnThrottledSeconds is the throttled time of cpu.stat: the
	// own quota only, also a sum over CPUs.
	ThrottledSeconds, OwnThrottledSeconds *float64
	// StoppedLow and StoppedHigh bound the stopped time, as wall time, within the window; see Stopped.
	StoppedLow, StoppedHigh *time.Duration
	// StoppedExact reports that the probe measured stopped time and that StoppedLow equals StoppedHigh. That holds
	// where the probe counted late by at most a thousandth of the window. Otherwise the two differ by twice the late
	// time, and StoppedExact is false. StoppedIntervals is the number of stopped intervals that the probe counted.
	StoppedExact     bool
	StoppedIntervals *uint64
	// Width[i] is how long i CPUs ran the container at one instant. Wanted[i] is how long i of its threads ran or were
	// runnable. Both come from the kernel's own scheduling events, and each adds up to the window. nil means that no
	// probe counted.
	Width, Wanted []time.Duration
	// ThrottledBy is BySelf, the path of the level that cost most, above or below, ByUnknown, or "".
	ThrottledBy string
	// ThrottledByAll are the levels that cost something, most first. Seconds are sums over CPUs.
	ThrottledByAll []Share
	// Cells is the window in steps of a tenth of a second, as far as a Watcher read it that finely. A Watcher does so
	// only for cgroups that were stopped within the last ten seconds. Empty means not read.
	Cells []Cell
	// NotMeasured says what could not be measured and why, "cpu.stat.local: ...". It has at most maxNotMeasured
	// entries.
	NotMeasured []string
}

// Share is one level's part in a container's throttled time.
type Share struct {
	Path    string
	Seconds float64
}

// Cell is the throttled time, a sum over CPUs, that ended within one step of the window. It adds the container's own
// and that of all ancestors with a quota. Other children of those ancestors may have caused a part.
type Cell struct {
	End       time.Duration // since Observation.Start
	Throttled time.Duration
}

// StoppedPerSecond returns the stopped time as a share of the window, 0 to 1. ok is false where it was not measured.
func (o Observation) StoppedPerSecond() (low, high float64, ok bool) {
	if o.StoppedLow == nil || o.StoppedHigh == nil || o.Window <= 0 {
		return 0, 0, false
	}
	return o.StoppedLow.Seconds() / o.Window.Seconds(), o.StoppedHigh.Seconds() / o.Window.Seconds(), true
}

// Inside returns the path of the cgroup inside the container whose quota cost most; "" where that is another level's.
func (o Observation) Inside() string {
	own := o.Container.Group.Path
	switch by := o.ThrottledBy; {
	case own == "", by == "", by == BySelf, by == ByUnknown, !cgroup.Below(by, own):
		return ""
	default:
		return by
	}
}

// ByOwnQuota reports whether the quota that cost most is the container's own.
func (o Observation) ByOwnQuota() bool { return o.Owns(o.ThrottledBy) }

// Owns reports whether the quota of a level, BySelf or a path, is the container's own. That of its pod counts as its own where both
// are the same: the kubelet gives a pod the sum of its containers' limits, so that this is the only one, and which of the two stops
// it first is chance. (A pod-level limit can be the same too, and have containers without limits below it.)
func (o Observation) Owns(level string) bool {
	if level == BySelf || level != "" && level == o.Container.Group.Path {
		return true
	}
	if o.Container.ScopeOf(level) != container.ScopePod || len(o.Levels) < 2 || o.Levels[1].Path != level {
		return false
	}
	limit, limited := o.Levels[0].Limit.Bound()
	pods, podLimited := o.Levels[1].Limit.Bound()
	return limited && podLimited && math.Abs(limit-pods) < 1e-6
}

// Above reports whether the stopped time may exceed the bound, a share of the window (0.05: 50 ms in a second). It
// judges by StoppedHigh, because without cpu.stat.local the lower bound is always 0 and would find nothing. ok is false
// where stopped time was not measured.
func (o Observation) Above(bound float64) (above, ok bool) {
	_, high, ok := o.StoppedPerSecond()
	return ok && high > bound, ok
}

// ThrottledRatio returns throttled periods / periods of the container's own quota, 0 to 1. ok is false where the window
// had none or they were not measured. The ratio says how often, not how long: do not judge by it alone.
func (o Observation) ThrottledRatio() (ratio float64, ok bool) {
	if o.Periods == nil || o.ThrottledPeriods == nil || *o.Periods == 0 {
		return 0, false
	}
	return float64(*o.ThrottledPeriods) / float64(*o.Periods), true
}
