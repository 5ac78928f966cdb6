package live

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// cannotTell lists what counters never show.
var cannotTell = []string{
	"width, wanted, the timeline: only the kernel's scheduling events show them",
	"which threads spent the quota: counters know no threads",
	"where waiting went: counters do not see threads that wait for a CPU without being throttled",
}

// FromCounters explains a container from its counters alone. why says why there are no events. It gives
// stopped time only if both of its bounds agree.
func FromCounters(o observe.Observation, why string) diagnose.Explanation {
	e := countersOf(&o).Explain()
	e.LimitChanges = o.LimitChanges
	if e.Cause == diagnose.None && *o.StoppedHigh == 0 {
		e.Verdict += calm(o.ThrottledBefore, o.Window)
	}
	if why := recording.LimitsChanged(o.Container.Group.Path, o.LimitChanges); why != "" {
		e.Undecided(why)
	}
	e.NotMeasured = append(e.NotMeasured, "scheduling events: "+why)
	e.NotMeasured = append(e.NotMeasured, cannotTell...)
	e.NotMeasured = append(e.NotMeasured, o.NotMeasured...)
	return e
}

// countersOf is what an observation has for a diagnosis from counters.
func countersOf(o *observe.Observation) diagnose.Counters {
	c := diagnose.Counters{
		Target: o.Container.Name, Start: o.Start, Window: o.Window, LimitCPUs: o.LimitCPUs,
		LimitUnknown: o.LimitCPUs == nil && len(o.Levels) == 0, Periods: o.Periods, ThrottledPeriods: o.ThrottledPeriods,
		UsedCPUs: o.UsedCPUs, CPUsAllowed: o.CPUsAllowed.Size(), CPUsOnline: o.CPUsOnline, StoppedLow: o.StoppedLow,
		StoppedHigh: o.StoppedHigh, Width: o.Width, Wanted: o.Wanted,
	}
	for i, l := range o.Levels {
		if l.Path == o.LimitAt {
			c.Quota, c.Period = l.Limit.Quota, l.Limit.Period
		}
		if cpus, ok := l.Limit.Bound(); ok && i == 0 {
			c.OwnLimitCPUs = cpus
		}
	}
	if w, ok := o.Waiting(); ok {
		c.ForOwnQuota, c.ForAncestor, c.ForCPUs = w.Quota, w.Ancestor, w.Contention
	}
	all := o.ThrottledByAll
	if len(all) == 0 && o.ThrottledBy != "" {
		all = []observe.Share{{Path: o.ThrottledBy, Seconds: 1}}
	}
	sum := 0.0
	for _, s := range all {
		sum += s.Seconds
	}
	for _, s := range all {
		by := diagnose.CountersShare{Path: s.Path, Share: s.Seconds / sum}
		switch own := o.Container.Group.Path; {
		case o.Owns(s.Path):
		case own != "" && cgroup.Below(s.Path, own):
			by.Whose = diagnose.OfInside
		default:
			by.Whose = diagnose.OfAncestor
			if s.Path == observe.ByUnknown {
				by.Path = ""
			}
		}
		c.StoppedBy = append(c.StoppedBy, by)
	}
	return c
}

// calm says that a look without a throttled period was short, where periods were throttled before it; "": none were, or that is not known.
func calm(before *float64, window time.Duration) string {
	if before == nil || *before <= 0 {
		return ""
	}
	return fmt.Sprintf(" But %.2g %% of its periods were throttled since it was made, and none in these %s: look "+
		"longer (--for).", 100**before, text.Duration(window.Round(time.Second)))
}
