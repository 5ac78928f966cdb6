package diagnose

import (
	"fmt"
)

// hasAllCPUs tells whether its cpuset leaves out no CPU of the host: then not the cpuset but the host is too small.
func (recorded *figures) hasAllCPUs() bool {
	return recorded.online > 0 && recorded.allowed >= recorded.online
}

// tooFewCPUs finds a cpuset that is too small. With a limit below the allowed CPUs the threads compete for
// the limit instead.
func tooFewCPUs(recorded *figures) (found, bool) {
	waited := recorded.waiting[byOwnThreads]
	if recorded.allowed == 0 || recorded.hasAllCPUs() || recorded.limit > 0 && recorded.limit < 0.95*float64(recorded.allowed) ||
		recorded.mostWanted <= recorded.allowed || !recorded.matters(waited) {
		return found{}, false
	}
	f := found{cause: Cpuset, wall: recorded.behind.own, waited: waited, severity: waited}
	where := ""
	if recorded.online > 0 {
		where = fmt.Sprintf(" of the host's %d", recorded.online)
	}
	f.evidence = fmt.Sprintf("it may use %s%s and wanted %.1f on average, up to %d; its threads waited for each other for %s",
		formatCPUs(float64(recorded.allowed)), where, recorded.meanWanted, recorded.mostWanted, formatTime(waited))
	f.verdict = fmt.Sprintf("Its cpuset has %s%s, and up to %d threads wanted one (%.1f on average): they waited for "+
		"each other for %s of thread time in %s.",
		formatCPUs(float64(recorded.allowed)), where, recorded.mostWanted, recorded.meanWanted, formatTime(waited),
		formatTime(recorded.window))
	return f, true
}
