package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// inside is the quota of a cgroup in the container: a vcpu of libvirt, a container in a container, a unit below a unit. Its own quota
// and those above may stop it as well; where they stop it longer their causes come first.
func inside(recorded *figures) (found, bool) {
	if !recorded.throttled() || recorded.innermost == nil || float64(recorded.insideStopped) < Negligible*float64(recorded.window) {
		return found{}, false
	}
	l := recorded.innermost
	path := text.EscapePath(l.Path)
	f := found{cause: Inside, stopped: recorded.insideStopped, severity: recorded.quotaSeverity(), rank: rankInsideToo,
		guilty: []string{path}}
	if float64(recorded.insideStopped) >= ancestorShare*float64(recorded.stopped) {
		f.rank = rankInside
	}
	quota := "the quota of " + path
	if l.QuotaNS != nil {
		quota += fmt.Sprintf(" (%s in %s)", formatTime(*l.QuotaNS), formatTime(l.PeriodNS))
	}
	f.evidence = fmt.Sprintf("%s held threads back for %s; quotas of cgroups in it for %s of the %s in which any "+
		"quota did; the whole used %s on average",
		quota, formatTime(l.stopped), formatTime(recorded.insideStopped), formatTime(recorded.stopped), formatCPUs(recorded.meanWidth))
	f.verdict = fmt.Sprintf("%s, a cgroup in it, held threads back for %s of %s: explain that cgroup.", capital(quota),
		formatTime(l.stopped), formatTime(recorded.window))
	return f, true
}
