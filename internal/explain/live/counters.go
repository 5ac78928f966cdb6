package live

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Shares of the limit at which counters decide, the same as in the diagnosis of a recording.
const (
	shortageUse = 0.95
	burstUse    = 0.80
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
	e := diagnose.Explanation{
		Target: o.Container.Name, Start: o.Start, Window: o.Window, LimitCPUs: o.LimitCPUs,
		Periods: o.Periods, ThrottledPeriods: o.ThrottledPeriods,
		MeanWidth: o.UsedCPUs, LimitUnknown: o.LimitCPUs == nil && len(o.Levels) == 0,
	}
	if o.StoppedLow != nil && o.StoppedHigh != nil && *o.StoppedLow == *o.StoppedHigh {
		e.Stopped = o.StoppedHigh
	}
	e.LimitChanges = o.LimitChanges
	e.Cause, e.Verdict = countersCause(o)
	if why := recording.LimitsChanged(o.Container.Group.Path, o.LimitChanges); why != "" {
		e.Undecided(why)
	}
	if e.Cause != "" {
		e.Causes = []diagnose.RankedCause{{Cause: e.Cause, Stopped: e.Stopped, Wall: e.Stopped, Evidence: countersEvidence(o)}}
	}
	e.NotMeasured = append(e.NotMeasured, "scheduling events: "+why)
	e.NotMeasured = append(e.NotMeasured, cannotTell...)
	e.NotMeasured = append(e.NotMeasured, o.NotMeasured...)
	return e
}

// countersCause returns the cause, or "" if counters do not decide it, and the verdict.
func countersCause(o observe.Observation) (diagnose.Cause, string) {
	name := o.Container.Name
	switch {
	case o.StoppedHigh == nil:
		return "", fmt.Sprintf("Whether a quota stopped %s could not be measured.", name)
	case *o.StoppedHigh == 0:
		return diagnose.None, fmt.Sprintf("No quota held %s back; counters do not show whether its threads waited "+
			"for CPUs.", name) + calm(o.ThrottledBefore, o.Window)
	case o.Inside() != "":
		return diagnose.Inside, fmt.Sprintf("The quota of a cgroup in it, %s, held threads of %s back for %s: "+
			"explain that cgroup.", text.EscapePath(o.Inside()), name, formatStopped(o))
	case !o.ByOwnQuota() && o.ThrottledBy != observe.ByUnknown && o.ThrottledBy != "":
		return diagnose.Ancestor, fmt.Sprintf("The quota of %s held %s back for %s.", text.EscapePath(o.ThrottledBy),
			name, formatStopped(o))
	case o.ThrottledBy == observe.ByUnknown:
		return diagnose.Ancestor, fmt.Sprintf("A quota of an ancestor that is not visible here held %s back for %s.",
			name, formatStopped(o))
	}
	use, known := limitUse(o)
	switch {
	case !known:
		return "", fmt.Sprintf("%s was stopped for %s; without its CPU use counters do not tell why.", name, formatStopped(o))
	case use >= shortageUse:
		return diagnose.Shortage, fmt.Sprintf("%s used %.0f %% of its limit and was stopped for %s: it wants more "+
			"CPU than it has.", name, 100*use, formatStopped(o))
	case use < burstUse:
		return diagnose.Burst, fmt.Sprintf("%s used only %.0f %% of its limit on average and yet was stopped for %s: "+
			"it is wide for short times, or its work comes in pieces longer than the quota; counters do not tell which.",
			name, 100*use, formatStopped(o))
	}
	return "", fmt.Sprintf("%s used %.0f %% of its limit and was stopped for %s: counters do not tell bursts from a "+
		"shortage here.", name, 100*use, formatStopped(o))
}

// calm says that a look without a throttled period was short, where periods were throttled before it; "": none were, or that is not known.
func calm(before *float64, window time.Duration) string {
	if before == nil || *before <= 0 {
		return ""
	}
	return fmt.Sprintf(" But %.2g %% of its periods were throttled since it was made, and none in these %s: look "+
		"longer (--for).", 100**before, text.Duration(window.Round(time.Second)))
}

// limitUse is the CPU time used as a share of the limit.
func limitUse(o observe.Observation) (float64, bool) {
	if o.UsedCPUs == nil || o.LimitCPUs == nil || *o.LimitCPUs <= 0 {
		return 0, false
	}
	return *o.UsedCPUs / *o.LimitCPUs, true
}

// formatStopped describes stopped time with its bounds.
func formatStopped(o observe.Observation) string {
	low, high, window := text.Duration(*o.StoppedLow), text.Duration(*o.StoppedHigh), text.Duration(o.Window)
	if low == high {
		return high + " of " + window
	}
	return low + " to " + high + " of " + window
}

func countersEvidence(o observe.Observation) string {
	text := "counters only"
	if o.Periods != nil && o.ThrottledPeriods != nil && *o.Periods > 0 {
		text += fmt.Sprintf("; %d of %d periods throttled", *o.ThrottledPeriods, *o.Periods)
	}
	if o.UsedCPUs != nil {
		text += fmt.Sprintf("; %.2f CPUs used on average", *o.UsedCPUs)
		if o.LimitCPUs != nil {
			text += fmt.Sprintf(" of %.4g", *o.LimitCPUs)
		}
	}
	if o.StoppedHigh != nil && o.StoppedLow != nil && *o.StoppedHigh > 0 {
		text += "; stopped for " + formatStopped(o)
	}
	return text
}
