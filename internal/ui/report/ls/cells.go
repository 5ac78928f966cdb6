package ls

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
)

// none stands for what was measured, and there is none.
const none = "none"

func shownText(s string) string { return text.Sanitize(s, 0) }

// nameCell is for names that only some containers have.
func nameCell(s string) string {
	if s == "" {
		return none
	}
	return shownText(s)
}

func limitCell(o *observe.Observation) string {
	switch {
	case o.LimitCPUs != nil:
		return strconv.FormatFloat(*o.LimitCPUs, 'g', 4, 64)
	case len(o.Levels) == 0:
		return figure.Missing
	}
	return none
}

func usedCell(o *observe.Observation) string {
	if o.UsedCPUs == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%.2f", *o.UsedCPUs)
}

// periodsCell is "12/100": throttled periods of periods, of its own quota.
func periodsCell(o *observe.Observation) string {
	if o.Periods == nil || o.ThrottledPeriods == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%d/%d", *o.ThrottledPeriods, *o.Periods)
}

// stoppedCell is stopped time per second: "81-240 ms/s", or one figure where both bounds are the same.
func stoppedCell(o *observe.Observation) string {
	low, high, ok := o.StoppedPerSecond()
	if !ok {
		return figure.Missing
	}
	return text.PerSecond(low, high)
}

func cpusCell(o *observe.Observation) string {
	if o.CPUsAllowed.IsEmpty() {
		return figure.Missing
	}
	return o.CPUsAllowed.String()
}

func byCell(o *observe.Observation) string {
	switch {
	case o.Container.Pod != "" && o.ThrottledBy == cgroup.Parent(o.Container.Group.Path):
		return "pod"
	case o.ThrottledBy != "":
		return shownText(o.ThrottledBy)
	case o.StoppedHigh == nil, *o.StoppedHigh > 0:
		return figure.Missing
	}
	return none
}

// ownLimitCell is a duration of the container's own level; without a quota there it means nothing.
func ownLimitCell(o *observe.Observation, pick func(cgroup.Limit) time.Duration) string {
	switch {
	case len(o.Levels) == 0:
		return figure.Missing
	case !o.Levels[0].Limit.Limited():
		return none
	}
	return text.ExactDuration(pick(o.Levels[0].Limit))
}

func periodCell(o *observe.Observation) string {
	return ownLimitCell(o, func(l cgroup.Limit) time.Duration { return l.Period })
}

func burstCell(o *observe.Observation) string {
	return ownLimitCell(o, func(l cgroup.Limit) time.Duration { return l.Burst })
}

// throttledTimeCell is the kernel's own figure, a sum over CPUs: of all quotas where the kernel tells, else of its own.
func throttledTimeCell(o *observe.Observation) string {
	seconds := o.ThrottledSeconds
	if seconds == nil {
		seconds = o.OwnThrottledSeconds
	}
	if seconds == nil {
		return figure.Missing
	}
	return text.Duration(time.Duration(*seconds * float64(time.Second)))
}
