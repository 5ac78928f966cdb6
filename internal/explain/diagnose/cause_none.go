package diagnose

import (
	"fmt"
)

// nothingWrong is the finding if no cause applies.
func nothingWrong(recorded *figures) found {
	f := found{cause: None, evidence: recorded.evidenceOfUse()}
	waited := recorded.demand() - recorded.cpu
	switch {
	case recorded.cpu == 0 && recorded.frozen:
		f.verdict = "It is frozen, as by docker pause: none of its threads can run until it is thawed."
	case recorded.cpu == 0 && recorded.meanWanted == 0:
		f.verdict = fmt.Sprintf("None of its threads ran or wanted to run for %s.", formatTime(recorded.window))
	case !recorded.measured && (recorded.limit > 0 || recorded.limitUnknown):
		f.verdict = "No cause is visible; whether a quota held it back was not measured."
	case recorded.stopped > 0:
		f.verdict = fmt.Sprintf("Nothing wrong: a quota held it back for only %s of %s.", formatTime(recorded.stopped),
			formatTime(recorded.window))
	case recorded.hasAllCPUs() && recorded.mostWanted > recorded.online && recorded.matters(recorded.waiting[byOwnThreads]):
		f.verdict = fmt.Sprintf("No quota held it back. It may use all %s of the host, and up to %d threads wanted "+
			"one: they waited for each other for %s of thread time. The host is full: run fewer threads, or use a larger host.",
			formatCPUs(float64(recorded.online)), recorded.mostWanted, formatTime(recorded.waiting[byOwnThreads]))
	default:
		f.verdict = fmt.Sprintf("Nothing wrong: no quota held it back, and its threads waited %s for CPUs while they ran for %s.",
			formatTime(waited), formatTime(recorded.cpu))
	}
	return f
}

func (recorded *figures) evidenceOfUse() string {
	text := fmt.Sprintf("mean use %s, up to %d at once", formatCPUs(recorded.meanWidth), recorded.widest)
	if recorded.limit > 0 {
		text += fmt.Sprintf(", limit %s", formatCPUs(recorded.limit))
	}
	return text
}

// unexplained is the finding that a quota stopped it and no cause accounts for that.
func unexplained(recorded *figures) (found, bool) {
	f := found{cause: None, evidence: recorded.evidenceOfUse(), severity: recorded.quotaSeverity(), rank: rankMaybe}
	switch {
	case !recorded.measured && recorded.throttledPeriods != nil && *recorded.throttledPeriods > 0:
		f.evidence += fmt.Sprintf(", %d of %d periods throttled", *recorded.throttledPeriods, *recorded.periods)
		f.verdict = fmt.Sprintf("A quota held it back in %d of %d periods. For how long and why was not measured; no "+
			"other cause is visible.",
			*recorded.throttledPeriods, *recorded.periods)
	case recorded.throttled():
		f.stopped = recorded.stopped
		f.verdict = fmt.Sprintf("A quota held it back for %s of %s. No cause of that is visible.",
			formatTime(recorded.stopped), formatTime(recorded.window))
	default:
		return found{}, false
	}
	return f, true
}
