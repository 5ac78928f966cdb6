package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// ancestorShare is the share of the stopped time from which on an ancestor's quota is the cause. Below it the
// causes of the container's own quota come first.
const ancestorShare = 0.5

func ancestor(of *figures) (found, bool) {
	if !of.throttled() || of.ancestorStopped <= 0 {
		return found{}, false
	}
	f := found{cause: Ancestor, stopped: of.ancestorStopped, severity: of.quotaSeverity(), rank: rankAncestorToo}
	if float64(of.ancestorStopped) >= ancestorShare*float64(of.stopped) && !demandAboveOwnLimit(of) {
		f.rank = rankAncestor
	}
	path := "an ancestor"
	if of.binding != nil && !of.binding.Own {
		path = text.Sanitize(of.binding.Path, 0)
	}
	quota := "the quota of " + path
	if of.quota > 0 && of.binding != nil && !of.binding.Own {
		quota = fmt.Sprintf("the quota of %s (%s in %s)", path, formatTime(of.quota), formatTime(of.period))
	}
	f.evidence = fmt.Sprintf("%s held it back for %s, its own for %s; the container itself used %s on average",
		quota, formatTime(of.ancestorStopped), formatTime(of.ownStopped), formatCPUs(of.meanWidth))
	who := fmt.Sprintf("the container itself used %s on average", formatCPUs(of.meanWidth))
	if len(of.siblings) > 0 && of.siblings[0].cpu > 0 && of.window > 0 {
		s := of.siblings[0]
		if s.cpu > of.cpu {
			f.guilty = []string{s.name}
		}
		rest := fmt.Sprintf("%s below it used %s", s.name, formatCPUs(float64(s.cpu)/float64(of.window)))
		f.evidence += "; " + rest
		who += ", " + rest
	}
	f.verdict = fmt.Sprintf("%s held the container back for %s of %s; %s.", capital(quota),
		formatTime(of.ancestorStopped), formatTime(of.window), who)
	return f, true
}
