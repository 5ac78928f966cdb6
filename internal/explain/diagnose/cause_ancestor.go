package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// ancestorShare is the share of the stopped time from which on an ancestor's quota is the cause. Below it the
// causes of the container's own quota come first.
const ancestorShare = 0.5

func ancestor(recorded *figures) (found, bool) {
	if !recorded.throttled() || recorded.ancestor == nil || recorded.ancestorStopped <= 0 {
		return found{}, false
	}
	f := found{cause: Ancestor, stopped: recorded.ancestorStopped, severity: recorded.quotaSeverity(), rank: rankAncestorToo}
	if float64(recorded.ancestorStopped) >= ancestorShare*float64(recorded.stopped) && !demandAboveOwnLimit(recorded) {
		f.rank = rankAncestor
	}
	l := recorded.ancestor
	quota := "the quota of " + text.Sanitize(l.Path, 0)
	if l.Path == "" {
		quota = "a quota above it, whose cgroup is not visible from here,"
	}
	if l.QuotaNS != nil && *l.QuotaNS > 0 {
		quota += fmt.Sprintf(" (%s in %s)", formatTime(*l.QuotaNS), formatTime(l.PeriodNS))
	}
	f.evidence = fmt.Sprintf("%s held it back for %s, its own for %s; the container itself used %s on average",
		quota, formatTime(recorded.ancestorStopped), formatTime(recorded.ownStopped), formatCPUs(recorded.meanWidth))
	who := fmt.Sprintf("the container itself used %s on average", formatCPUs(recorded.meanWidth))
	if len(recorded.siblings) > 0 && recorded.siblings[0].cpu > 0 && recorded.window > 0 {
		s := recorded.siblings[0]
		if s.cpu > recorded.cpu {
			f.guilty = []string{s.name}
		}
		rest := fmt.Sprintf("%s below it used %s", s.name, formatCPUs(float64(s.cpu)/float64(recorded.window)))
		f.evidence += "; " + rest
		who += ", " + rest
	}
	f.verdict = fmt.Sprintf("%s held the container back for %s of %s; %s.", capital(quota),
		formatTime(recorded.ancestorStopped), formatTime(recorded.window), who)
	return f, true
}
