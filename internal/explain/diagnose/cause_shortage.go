package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// shortageUse is the mean use, as a share of the limit, from which on a better shape of the work finds no
	// room. The edges of periods account for the rest to 100 %.
	shortageUse = 0.95
	// shortagePeriods is for how many periods in a row wanted must stay above the limit. A queue that neither
	// one refill nor the next clears is no burst.
	shortagePeriods = 3
)

// demandAboveLimit reports whether the mean demand is above the limit.
func demandAboveLimit(of *figures) bool {
	return of.throttled() && of.quotaKnown() && of.use() >= shortageUse && of.above >= shortagePeriods*of.period
}

// demandAboveOwnLimit reports whether an ancestor's quota holds back a container whose threads always want more than
// its own limit. Without the ancestor's quota its own would hold it back.
func demandAboveOwnLimit(of *figures) bool {
	return of.throttled() && of.ancestorStopped > 0 && of.ownLimit > 0 && of.belowOwn < backBelow
}

func shortage(of *figures) (found, bool) {
	if demandAboveOwnLimit(of) && !demandAboveLimit(of) {
		return shortageBelowAncestor(of), true
	}
	// If others held the CPUs for a while, a container that always wants more than its limit has not even
	// used that.
	if !demandAboveLimit(of) && !(ambiguous(of) && nearShortage(of)) {
		return found{}, false
	}
	f := found{cause: Shortage, stopped: of.stopped, severity: of.quotaSeverity(), rank: rankShortage,
		guilty: of.spenders(), near: of.use() < burstUse+nearShare}
	f.evidence = fmt.Sprintf("%s of the limit of %s used; %.1f threads wanted a CPU on average; wanted stayed above "+
		"the limit for up to %s, %.0f periods in a row",
		formatShare(of.use()), formatCPUs(of.limit), of.meanWanted, formatTime(of.above), float64(of.above)/float64(of.period))
	who := ""
	if p := of.spender(); p != nil {
		who = fmt.Sprintf(", most of it%s by %s of %s", of.whereSpent(), text.Count(p.threads, "thread"), formatPool(p))
	}
	f.verdict = fmt.Sprintf("It needs more CPU than it has: %.1f threads wanted a CPU on average and the limit is "+
		"%s; %s of it was used%s; the container %s.",
		of.meanWanted, formatCPUs(of.limit), formatShare(of.use()), who, stoppedText(of))
	return f, true
}

// whereSpent says that a spender is that of throttled periods, where these are few: in the others another may have used more.
func (of *figures) whereSpent() string {
	if of.periods == nil || of.throttledPeriods == nil || *of.throttledPeriods*2 > *of.periods {
		return ""
	}
	return " in throttled periods"
}

func shortageBelowAncestor(of *figures) found {
	f := found{cause: Shortage, stopped: of.stopped, severity: of.quotaSeverity(), rank: rankShortage, guilty: of.spenders()}
	f.evidence = fmt.Sprintf("%.1f threads wanted a CPU on average; wanted was above its own limit of %s for %s of "+
		"the time: an ancestor's quota held it back first, its own would have",
		of.meanWanted, formatCPUs(of.ownLimit), formatShare(1-of.belowOwn))
	who := ""
	if p := of.spender(); p != nil {
		who = fmt.Sprintf(", most of them %s", formatPool(p))
	}
	f.verdict = fmt.Sprintf("It wants more CPU than its own limit of %s all the time: %.1f threads wanted a CPU on "+
		"average%s; it had %s, and the container %s.",
		formatCPUs(of.ownLimit), of.meanWanted, who, formatCPUs(of.meanWidth), stoppedText(of))
	return f
}
