package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

// ancestorShare of the stopped time from which an ancestor's quota is what stops the container rather than its own. With
// less it is named after the causes of its own.
const ancestorShare = 0.5

func ancestor(of *figures) (found, bool) {
	if !of.throttled() || of.ancestorStopped <= 0 {
		return found{}, false
	}
	f := found{cause: Ancestor, stopped: of.ancestorStopped, severity: of.quotaSeverity(), rank: rankAncestorToo}
	if float64(of.ancestorStopped) >= ancestorShare*float64(of.stopped) && !shortAnyhow(of) {
		f.rank = rankAncestor
	}
	path := "an ancestor"
	if of.binding != nil && !of.binding.own {
		path = text.Sanitize(of.binding.Path, 0)
	}
	quota := "the quota of " + path
	if of.quota > 0 && of.binding != nil && !of.binding.own {
		quota = fmt.Sprintf("the quota of %s (%s in %s)", path, timeWords(of.quota), timeWords(of.period))
	}
	f.evidence = fmt.Sprintf("%s held it back for %s, its own for %s; the container itself used %s on average",
		quota, timeWords(of.ancestorStopped), timeWords(of.ownStopped), cpuWords(of.meanWidth))
	who := fmt.Sprintf("the container itself used %s on average", cpuWords(of.meanWidth))
	if len(of.siblings) > 0 && of.siblings[0].cpu > 0 && of.window > 0 {
		s := of.siblings[0]
		rest := fmt.Sprintf("%s below it used %s", s.name, cpuWords(float64(s.cpu)/float64(of.window)))
		f.evidence += "; " + rest
		who += ", " + rest
	}
	f.verdict = fmt.Sprintf("%s held the container back for %s of %s; %s.", capital(quota), timeWords(of.ancestorStopped), timeWords(of.window), who)
	return f, true
}
