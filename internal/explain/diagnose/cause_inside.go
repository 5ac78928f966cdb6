package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// inside is the quota of a cgroup in the container: a vcpu of libvirt, a container in a container, a unit below a unit. Its own quota
// and those above may stop it as well; where they stop it longer their causes come first.
func inside(of *figures) (found, bool) {
	if !of.throttled() || of.innermost == nil || float64(of.insideStopped) < Negligible*float64(of.window) {
		return found{}, false
	}
	l := of.innermost
	path := text.EscapePath(l.Path)
	f := found{cause: Inside, stopped: of.insideStopped, severity: of.quotaSeverity(), rank: rankInsideToo, guilty: []string{path}}
	if float64(of.insideStopped) >= ancestorShare*float64(of.stopped) {
		f.rank = rankInside
	}
	quota := "the quota of " + path
	if l.QuotaNS != nil {
		quota += fmt.Sprintf(" (%s in %s)", formatTime(*l.QuotaNS), formatTime(l.PeriodNS))
	}
	f.evidence = fmt.Sprintf("%s held threads back for %s; quotas of cgroups in it for %s of the %s in which any "+
		"quota did; the whole used %s on average",
		quota, formatTime(l.stopped), formatTime(of.insideStopped), formatTime(of.stopped), formatCPUs(of.meanWidth))
	f.verdict = fmt.Sprintf("%s, a cgroup in it, held threads back for %s of %s: explain that cgroup.", capital(quota),
		formatTime(l.stopped), formatTime(of.window))
	return f, true
}
