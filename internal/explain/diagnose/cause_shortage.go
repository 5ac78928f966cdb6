package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// shortagePeriods is for how many periods in a row wanted must stay above the limit. A queue that neither
// one refill nor the next clears is no burst.
const shortagePeriods = 3

// demandAboveLimit reports whether the mean demand is above the limit.
func demandAboveLimit(recorded *figures) bool {
	return recorded.throttled() && recorded.quotaKnown() && recorded.use() >= stats.UsedUp &&
		recorded.above >= shortagePeriods*recorded.period
}

// demandAboveOwnLimit reports whether an ancestor's quota holds back a container whose threads always want more than
// its own limit. Without the ancestor's quota its own would hold it back.
func demandAboveOwnLimit(recorded *figures) bool {
	return recorded.throttled() && recorded.ancestorStopped > 0 && recorded.ownLimit > 0 && recorded.belowOwn < backBelow
}

func shortage(recorded *figures) (found, bool) {
	if demandAboveOwnLimit(recorded) && !demandAboveLimit(recorded) {
		return shortageBelowAncestor(recorded), true
	}
	// If others held the CPUs for a while, a container that always wants more than its limit has not even
	// used that.
	if !demandAboveLimit(recorded) && !mayBeShortage(recorded) {
		return found{}, false
	}
	f := found{cause: Shortage, stopped: recorded.stopped, severity: recorded.quotaSeverity(), rank: rankShortage,
		guilty: recorded.spenders(), near: recorded.use() < BurstUse+nearShare}
	f.evidence = fmt.Sprintf("%s of the limit of %s used; %.1f threads wanted a CPU on average; wanted stayed above "+
		"the limit for up to %s, %.0f periods in a row",
		formatShare(recorded.use()), formatCPUs(recorded.limit), recorded.meanWanted, formatTime(recorded.above),
		float64(recorded.above)/float64(recorded.period))
	who := ""
	if p := recorded.spender(); p != nil {
		who = fmt.Sprintf(", most of it%s by %s of %s", recorded.whereSpent(), text.Count(p.threads, "thread"), formatPool(p))
	}
	f.verdict = fmt.Sprintf("It needs more CPU than it has: %.1f threads wanted a CPU on average and the limit is "+
		"%s; %s of it was used%s; the container %s.",
		recorded.meanWanted, formatCPUs(recorded.limit), formatShare(recorded.use()), who, stoppedText(recorded))
	return f, true
}

// whereSpent says that a spender is that of throttled periods, where these are few: in the others another may have used more.
func (recorded *figures) whereSpent() string {
	if recorded.periods == nil || recorded.throttledPeriods == nil || *recorded.throttledPeriods*2 > *recorded.periods {
		return ""
	}
	return " in throttled periods"
}

func shortageBelowAncestor(recorded *figures) found {
	f := found{cause: Shortage, stopped: recorded.stopped, severity: recorded.quotaSeverity(), rank: rankShortage,
		guilty: recorded.spenders()}
	f.evidence = fmt.Sprintf("%.1f threads wanted a CPU on average; wanted was above its own limit of %s for %s of "+
		"the time: an ancestor's quota held it back first, its own would have",
		recorded.meanWanted, formatCPUs(recorded.ownLimit), formatShare(1-recorded.belowOwn))
	who := ""
	if p := recorded.spender(); p != nil {
		who = fmt.Sprintf(", most of them %s", formatPool(p))
	}
	f.verdict = fmt.Sprintf("It wants more CPU than its own limit of %s all the time: %.1f threads wanted a CPU on "+
		"average%s; it had %s, and the container %s.",
		formatCPUs(recorded.ownLimit), recorded.meanWanted, who, formatCPUs(recorded.meanWidth), stoppedText(recorded))
	return f
}
