package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// shortageUse: from this share of the limit in use on average, there is no room left that a better shape of the
	// work could use; what misses from 100 % are the edges of periods.
	shortageUse = 0.95
	// shortagePeriods in a row without wanted coming back to the limit: a queue that one refill does not clear, nor
	// the next, is no burst.
	shortagePeriods = 3
)

// short says whether the mean demand is above the limit.
func short(of *figures) bool {
	return of.throttled() && of.ownsStop() && of.use() >= shortageUse && of.above >= shortagePeriods*of.period
}

// shortAnyhow says whether an ancestor's quota holds back a container whose threads want more than its own limit all the
// time: without the ancestor's, its own would hold it back.
func shortAnyhow(of *figures) bool {
	return of.throttled() && of.ancestorStopped > 0 && of.ownLimit > 0 && of.belowOwn < backBelow
}

func shortage(of *figures) (found, bool) {
	if shortAnyhow(of) && !short(of) {
		return shortageBelowAncestor(of), true
	}
	// Where others held the CPUs for a while, a container that wants more than its limit all the time has not even
	// used that.
	if !short(of) && !(between(of) && nearShortage(of)) {
		return found{}, false
	}
	f := found{cause: Shortage, stopped: of.stopped, severity: of.quotaSeverity(), rank: rankShortage}
	f.evidence = fmt.Sprintf("%s of the limit of %s used; %.1f threads wanted a CPU on average; wanted stayed above the limit for up to %s, %.0f periods in a row",
		shareWords(of.use()), cpuWords(of.limit), of.meanWanted, timeWords(of.above), float64(of.above)/float64(of.period))
	who := ""
	if p := of.spender(); p != nil {
		who = fmt.Sprintf(", most of it by %s of %s", text.Count(p.threads, "thread"), poolWords(p))
	}
	f.verdict = fmt.Sprintf("It needs more CPU than it has: %.1f threads wanted a CPU on average and the limit is %s; %s of it was used%s; the container %s.",
		of.meanWanted, cpuWords(of.limit), shareWords(of.use()), who, stoodStill(of))
	return f, true
}

func shortageBelowAncestor(of *figures) found {
	f := found{cause: Shortage, stopped: of.stopped, severity: of.quotaSeverity(), rank: rankShortage}
	f.evidence = fmt.Sprintf("%.1f threads wanted a CPU on average; wanted was above its own limit of %s for %s of the time: an ancestor's quota held it back first, its own would have",
		of.meanWanted, cpuWords(of.ownLimit), shareWords(1-of.belowOwn))
	who := ""
	if p := of.spender(); p != nil {
		who = fmt.Sprintf(", most of them %s", poolWords(p))
	}
	f.verdict = fmt.Sprintf("It wants more CPU than its own limit of %s all the time: %.1f threads wanted a CPU on average%s; it had %s, and the container %s.",
		cpuWords(of.ownLimit), of.meanWanted, who, cpuWords(of.meanWidth), stoodStill(of))
	return f
}
