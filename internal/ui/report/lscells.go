package report

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	lsMissing = "-"    // not measured
	lsNone    = "none" // measured, and there is none
)

func lsText(s string) string { return text.Sanitize(s, 0) }

// lsName is for names that only some containers have.
func lsName(s string) string {
	if s == "" {
		return lsNone
	}
	return lsText(s)
}

func lsLimit(o *observe.Observation) string {
	switch {
	case o.LimitCPUs != nil:
		return strconv.FormatFloat(*o.LimitCPUs, 'g', 4, 64)
	case len(o.Levels) == 0:
		return lsMissing
	}
	return lsNone
}

func lsUsed(o *observe.Observation) string {
	if o.UsedCPUs == nil {
		return lsMissing
	}
	return fmt.Sprintf("%.2f", *o.UsedCPUs)
}

// lsPeriods is "12/100": throttled periods of periods, of its own quota.
func lsPeriods(o *observe.Observation) string {
	if o.Periods == nil || o.ThrottledPeriods == nil {
		return lsMissing
	}
	return fmt.Sprintf("%d/%d", *o.ThrottledPeriods, *o.Periods)
}

// lsInterval is stopped time per second: "81-240ms/s", or one figure where both bounds are the same.
func lsInterval(o *observe.Observation) string {
	low, high, ok := o.StoppedPerSecond()
	if !ok {
		return lsMissing
	}
	from, to := lsMillis(low), lsMillis(high)
	if from == to {
		return to + "ms/s"
	}
	return from + "-" + to + "ms/s"
}

// lsMillis keeps one digit behind the point below 10: what is little shall not look like nothing.
func lsMillis(share float64) string {
	ms := share * 1000
	switch {
	case ms == 0:
		return "0"
	case ms < 0.1:
		return "<0.1"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

func lsCPUs(o *observe.Observation) string {
	if o.CPUsAllowed.IsEmpty() {
		return lsMissing
	}
	return o.CPUsAllowed.String()
}

func lsBy(o *observe.Observation) string {
	switch {
	case o.ThrottledBy != "":
		return lsText(o.ThrottledBy)
	case o.StoppedHigh == nil:
		return lsMissing
	}
	return lsNone
}

// lsOwnLimit is a duration of the container's own level; without a quota there it means nothing.
func lsOwnLimit(o *observe.Observation, of func(cgroup.Limit) time.Duration) string {
	switch {
	case len(o.Levels) == 0:
		return lsMissing
	case !o.Levels[0].Limit.Limited():
		return lsNone
	}
	return of(o.Levels[0].Limit).String()
}

func lsPeriod(o *observe.Observation) string {
	return lsOwnLimit(o, func(l cgroup.Limit) time.Duration { return l.Period })
}

func lsBurst(o *observe.Observation) string {
	return lsOwnLimit(o, func(l cgroup.Limit) time.Duration { return l.Burst })
}

// lsThrottledTime is the kernel's own figure, a sum over CPUs: of all quotas where the kernel tells, else of its own.
func lsThrottledTime(o *observe.Observation) string {
	seconds := o.ThrottledSeconds
	if seconds == nil {
		seconds = o.OwnThrottledSeconds
	}
	if seconds == nil {
		return lsMissing
	}
	return strconv.FormatFloat(*seconds, 'f', 3, 64) + "s"
}
