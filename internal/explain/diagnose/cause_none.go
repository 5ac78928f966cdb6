package diagnose

import (
	"fmt"
)

// nothingWrong is the finding if no cause applies.
func nothingWrong(of *figures) found {
	f := found{cause: None, evidence: of.evidenceOfUse()}
	waited := of.demand() - of.cpu
	switch {
	case of.cpu == 0 && of.frozen:
		f.verdict = "It is frozen, as by docker pause: none of its threads can run until it is thawed."
	case of.cpu == 0 && of.meanWanted == 0:
		f.verdict = fmt.Sprintf("None of its threads ran or wanted to run for %s.", formatTime(of.window))
	case !of.measured && of.limit > 0:
		f.verdict = "No cause is visible; whether a quota held it back was not measured."
	case of.stopped > 0:
		f.verdict = fmt.Sprintf("Nothing wrong: a quota held it back for only %s of %s.", formatTime(of.stopped), formatTime(of.window))
	case of.hasAllCPUs() && of.mostWanted > of.online && of.matters(of.waiting[byOwnThreads]):
		f.verdict = fmt.Sprintf("No quota held it back. It may use all %s of the host, and up to %d threads wanted "+
			"one: they waited for each other for %s of thread time. The host is full: run fewer threads, or use a larger host.",
			formatCPUs(float64(of.online)), of.mostWanted, formatTime(of.waiting[byOwnThreads]))
	default:
		f.verdict = fmt.Sprintf("Nothing wrong: no quota held it back, and its threads waited %s for CPUs while they ran for %s.",
			formatTime(waited), formatTime(of.cpu))
	}
	return f
}

func (of *figures) evidenceOfUse() string {
	text := fmt.Sprintf("mean use %s, up to %d at once", formatCPUs(of.meanWidth), of.widest)
	if of.limit > 0 {
		text += fmt.Sprintf(", limit %s", formatCPUs(of.limit))
	}
	return text
}

// unexplained is the finding that a quota stopped it and no cause accounts for that.
func unexplained(of *figures) (found, bool) {
	f := found{cause: None, evidence: of.evidenceOfUse(), severity: of.quotaSeverity(), rank: rankMaybe}
	switch {
	case !of.measured && of.throttledPeriods != nil && *of.throttledPeriods > 0:
		f.evidence += fmt.Sprintf(", %d of %d periods throttled", *of.throttledPeriods, *of.periods)
		f.verdict = fmt.Sprintf("A quota held it back in %d of %d periods. For how long and why was not measured; no "+
			"other cause is visible.",
			*of.throttledPeriods, *of.periods)
	case of.throttled():
		f.stopped = of.stopped
		f.verdict = fmt.Sprintf("A quota held it back for %s of %s. No cause of that is visible.",
			formatTime(of.stopped), formatTime(of.window))
	default:
		return found{}, false
	}
	return f, true
}
