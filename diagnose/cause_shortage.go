package diagnose

import "fmt"

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

func shortage(of *figures) (found, bool) {
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
		who = fmt.Sprintf(", most of it by %s of %s", countWords(p.threads, "thread"), poolWords(p))
	}
	f.verdict = fmt.Sprintf("It needs more CPU than it has: %.1f threads wanted a CPU on average and the limit is %s; %s of it was used%s; the container %s.",
		of.meanWanted, cpuWords(of.limit), shareWords(of.use()), who, stoodStill(of))
	return f, true
}
