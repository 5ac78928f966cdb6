package diagnose

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// waitingShare is the part of the time in which threads ran or wanted to from which waiting for a CPU matters: a tenth
// more time for everything.
const waitingShare = 0.10

// matters says whether thread time of waiting is a relevant part of the demand, and more than a share of the window that
// could be felt at all.
func (of *figures) matters(waiting int64) bool {
	return waiting > 0 && float64(waiting) >= waitingShare*float64(of.demand()-of.quotaWaiting()) &&
		float64(waiting) >= negligible*float64(of.window)
}

// others is waiting for CPUs that others held.
func (of *figures) others() int64 {
	return of.waiting[byNeighbour] + of.waiting[byHost] + of.waiting[bySteal]
}

func neighbours(of *figures) (found, bool) {
	waited := of.others()
	if !of.matters(waited) {
		return found{}, false
	}
	f := found{cause: Neighbours, stopped: waited, severity: waited}
	if of.throttled() && of.ownsStop() {
		// Of many threads that wait at once, the limit lets a few run: the others wait for their own kind, whoever
		// holds the CPUs, and without neighbours would spend the quota the sooner.
		f.severity = min(waited, of.owed)
	}
	who := "others"
	if len(of.neighbours) > 0 && of.neighbours[0].Waited > 0 {
		n := of.neighbours[0]
		who = n.Name
		f.evidence = fmt.Sprintf("%s held the CPUs for %s while it waited", n.Name, timeWords(n.Waited.Nanoseconds()))
		if n.Throttled != nil && *n.Throttled {
			f.evidence += ", and is throttled itself"
		}
		if n.Toggling != nil && *n.Toggling {
			f.evidence += ", and swings between many CPUs and none"
		}
		f.evidence += "; "
	}
	f.evidence += fmt.Sprintf("waiting for CPUs of others: %s of thread time (neighbours %s, the host's system %s, steal %s), against %s of CPU time",
		timeWords(waited), timeWords(of.waiting[byNeighbour]), timeWords(of.waiting[byHost]), timeWords(of.waiting[bySteal]), timeWords(of.cpu))
	f.verdict = fmt.Sprintf("Not its quota but others on the same CPUs: its threads were runnable and did not run for %s of thread time while others held the CPUs, most of all %s; they ran for %s.",
		timeWords(waited), who, timeWords(of.cpu))
	if of.throttled() {
		f.verdict = fmt.Sprintf("Others on the same CPUs cost more than the quota: %s of thread time waited while others held the CPUs, most of all %s; %s was held back by quotas.",
			timeWords(waited), who, timeWords(of.quotaWaiting()))
	}
	return f, true
}

// tooFewCPUs: with a limit below the CPUs allowed the limit is what its threads compete for, whoever holds the CPUs.
func tooFewCPUs(of *figures) (found, bool) {
	waited := of.waiting[byOwnThreads]
	if of.allowed == 0 || of.limit > 0 && of.limit < 0.95*float64(of.allowed) || of.mostWanted <= of.allowed || !of.matters(waited) {
		return found{}, false
	}
	f := found{cause: Cpuset, stopped: waited, severity: waited}
	where := ""
	if of.online > 0 {
		where = fmt.Sprintf(" of the host's %d", of.online)
	}
	f.evidence = fmt.Sprintf("it may use %s%s and wanted %.1f on average, up to %d; its threads waited for each other for %s",
		cpuWords(float64(of.allowed)), where, of.meanWanted, of.mostWanted, timeWords(waited))
	f.verdict = fmt.Sprintf("Its cpuset has %s%s, and up to %d threads wanted one (%.1f on average): they waited for each other for %s of thread time in %s.",
		cpuWords(float64(of.allowed)), where, of.mostWanted, of.meanWanted, timeWords(waited), timeWords(of.window))
	return f, true
}

// nothing is wrong, as far as was seen.
func nothing(of *figures) found {
	f := found{cause: None}
	f.evidence = fmt.Sprintf("mean use %s, up to %d at once", cpuWords(of.meanWidth), of.widest)
	if of.limit > 0 {
		f.evidence += fmt.Sprintf(", limit %s", cpuWords(of.limit))
	}
	waited := of.demand() - of.cpu
	switch {
	case of.cpu == 0 && of.meanWanted == 0:
		f.verdict = fmt.Sprintf("Nothing of it ran or wanted to run for %s.", timeWords(of.window))
	case !of.measured && of.throttledPeriods != nil && *of.throttledPeriods > 0:
		f.evidence += fmt.Sprintf(", %d of %d periods throttled", *of.throttledPeriods, *of.periods)
		f.verdict = fmt.Sprintf("A quota held it back in %d of %d periods; for how long, and why, was not measured, and nothing else is wrong that could be seen.",
			*of.throttledPeriods, *of.periods)
	case !of.measured && of.limit > 0:
		f.verdict = "Nothing wrong that could be seen; whether a quota held it back was not measured."
	case of.stopped > 0:
		f.verdict = fmt.Sprintf("Nothing wrong: a quota held it back for only %s of %s.", timeWords(of.stopped), timeWords(of.window))
	default:
		f.verdict = fmt.Sprintf("Nothing wrong: no quota held it back, and its threads waited %s for CPUs while they ran for %s.",
			timeWords(waited), timeWords(of.cpu))
	}
	return f
}

// scheduler: proof that limits are not kept is a period with more than the quota's CPU time and nothing held back.
func scheduler(of *figures) (found, bool) {
	if of.schedExt == "" || of.limit <= 0 || of.throttled() || of.sums.overUnstopped < shortagePeriods {
		return found{}, false
	}
	f := found{cause: Scheduler, severity: int64(time.Duration(maxAt)), rank: rankScheduler}
	f.evidence = fmt.Sprintf("the sched_ext scheduler %q is loaded; %s used more than the quota of %s, up to %s, and nothing was held back",
		of.schedExt, text.Count(of.sums.overUnstopped, "period"), timeWords(of.quota), timeWords(of.sums.unstoppedUsed))
	f.verdict = fmt.Sprintf("The loaded sched_ext scheduler %q does not keep limits: the container used up to %s in periods with a quota of %s.",
		of.schedExt, timeWords(of.sums.unstoppedUsed), timeWords(of.quota))
	return f, true
}
