package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// nothingWrong is the finding if no cause applies.
func nothingWrong(of *figures) found {
	f := found{cause: None}
	f.evidence = fmt.Sprintf("mean use %s, up to %d at once", formatCPUs(of.meanWidth), of.widest)
	if of.limit > 0 {
		f.evidence += fmt.Sprintf(", limit %s", formatCPUs(of.limit))
	}
	waited := of.demand() - of.cpu
	switch {
	case of.cpu == 0 && of.meanWanted == 0:
		f.verdict = fmt.Sprintf("None of its threads ran or wanted to run for %s.", formatTime(of.window))
	case !of.measured && of.throttledPeriods != nil && *of.throttledPeriods > 0:
		f.evidence += fmt.Sprintf(", %d of %d periods throttled", *of.throttledPeriods, *of.periods)
		f.verdict = fmt.Sprintf("A quota held it back in %d of %d periods. For how long and why was not measured; no other cause is visible.",
			*of.throttledPeriods, *of.periods)
	case !of.measured && of.limit > 0:
		f.verdict = "No cause is visible; whether a quota held it back was not measured."
	case of.throttled() && of.limit > 0:
		f.verdict = fmt.Sprintf("A quota held it back for %s of %s. No cause of that is visible.", formatTime(of.stopped), formatTime(of.window))
	case of.throttled():
		which := "explain the cgroups in it"
		if of.binding != nil && of.binding.stopped > 0 && of.binding.Path != of.path {
			which = fmt.Sprintf("most of it that of %s: explain that cgroup", text.EscapePath(of.binding.Path))
		}
		f.verdict = fmt.Sprintf("No quota of its own or above stopped it. Quotas below it held threads back for %s of %s, %s.",
			formatTime(of.stopped), formatTime(of.window), which)
	case of.stopped > 0:
		f.verdict = fmt.Sprintf("Nothing wrong: a quota held it back for only %s of %s.", formatTime(of.stopped), formatTime(of.window))
	case of.hasAllCPUs() && of.mostWanted > of.online && of.matters(of.waiting[byOwnThreads]):
		f.verdict = fmt.Sprintf("No quota held it back. It may use all %s of the host, and up to %d threads wanted one: they waited for each other for %s of thread time. The host is full: run fewer threads, or use a larger host.",
			formatCPUs(float64(of.online)), of.mostWanted, formatTime(of.waiting[byOwnThreads]))
	default:
		f.verdict = fmt.Sprintf("Nothing wrong: no quota held it back, and its threads waited %s for CPUs while they ran for %s.",
			formatTime(waited), formatTime(of.cpu))
	}
	return f
}
