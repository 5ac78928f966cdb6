package diagnose

import (
	"fmt"
)

// hasAllCPUs tells whether its cpuset leaves out no CPU of the host: then not the cpuset but the host is too small.
func (of *figures) hasAllCPUs() bool { return of.online > 0 && of.allowed >= of.online }

// tooFewCPUs finds a cpuset that is too small. With a limit below the allowed CPUs the threads compete for
// the limit instead.
func tooFewCPUs(of *figures) (found, bool) {
	waited := of.waiting[byOwnThreads]
	if of.allowed == 0 || of.hasAllCPUs() || of.limit > 0 && of.limit < 0.95*float64(of.allowed) ||
		of.mostWanted <= of.allowed || !of.matters(waited) {
		return found{}, false
	}
	f := found{cause: Cpuset, wall: of.behind.own, waited: waited, severity: waited}
	where := ""
	if of.online > 0 {
		where = fmt.Sprintf(" of the host's %d", of.online)
	}
	f.evidence = fmt.Sprintf("it may use %s%s and wanted %.1f on average, up to %d; its threads waited for each other for %s",
		formatCPUs(float64(of.allowed)), where, of.meanWanted, of.mostWanted, formatTime(waited))
	f.verdict = fmt.Sprintf("Its cpuset has %s%s, and up to %d threads wanted one (%.1f on average): they waited for "+
		"each other for %s of thread time in %s.",
		formatCPUs(float64(of.allowed)), where, of.mostWanted, of.meanWanted, formatTime(waited), formatTime(of.window))
	return f, true
}
