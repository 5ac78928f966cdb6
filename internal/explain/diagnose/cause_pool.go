package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// poolSpent is the least share of the CPU time in throttled periods that the pool which stops another has spent,
	// and victimSpent the most that the one which is stopped has: with a larger part it stops itself.
	poolSpent   = 0.5
	victimSpent = 1.0 / 3
	// A pool that used more than selfMost of the quota in a period, and selfSwing times what it uses in a period on
	// average, comes in bursts of its own, and would be stopped without the other.
	selfMost  = 0.6
	selfSwing = 2.5
	// Of the stopped time, the other pool must have had threads held back for victimStopped, in at least
	// victimHolds spells. From victimLead on, and with victimWork of all CPU time, this is what hurts most: below, its
	// threads hardly work, as a runtime's own, and it is named after what else fits.
	victimStopped = 0.10
	victimLead    = 0.25
	victimWork    = 0.02
	victimHolds   = 3
)

func poolStopsPool(of *figures) (found, bool) {
	if !of.throttled() || of.ownStopped == 0 || len(of.pools) < 2 {
		return found{}, false
	}
	all := int64(0)
	for _, p := range of.pools {
		all += p.throttled[of.track]
	}
	culprit := of.spender()
	if all <= 0 || float64(culprit.throttled[of.track]) < poolSpent*float64(all) {
		return found{}, false
	}
	var victim *pool
	for _, p := range of.pools[1:] {
		if float64(p.throttled[of.track]) > victimSpent*float64(all) || p.holds < victimHolds ||
			p.stopsItself(of) ||
			float64(p.stopped) < victimStopped*float64(of.stopped) {
			continue
		}
		// Of several, the one that did most work with the most time lost.
		if victim == nil || p.works(of) && !victim.works(of) || p.works(of) == victim.works(of) && p.stopped > victim.stopped {
			victim = p
		}
	}
	if victim == nil {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(victim.stopped, of.stopped), severity: of.quotaSeverity(), rank: rankPoolToo}
	if victim.works(of) && float64(victim.stopped) >= victimLead*float64(of.stopped) {
		f.rank = rankPool
	}
	if of.longRuns() { // it stops itself first, whatever it takes along
		f.rank = rankPoolToo
	}
	spentShare := float64(culprit.throttled[of.track]) / float64(all)
	f.evidence = fmt.Sprintf("%s, which used %s of the CPU time in throttled periods, was held back for %s in %s; %s used %s",
		poolWords(victim), shareWords(float64(victim.throttled[of.track])/float64(all)), timeWords(victim.stopped),
		text.Count(victim.holds, "spell"), poolWords(culprit), shareWords(spentShare))
	late := ""
	if q := victim.delay.quantiles(); q != nil {
		late = fmt.Sprintf(" (99th percentile of its delay: %s)", timeWords(q.P99.Nanoseconds()))
	}
	f.verdict = fmt.Sprintf("%s spent %s of the %s quota, up to %d wide, and stopped %s with it for %s of %s%s.",
		capital(poolWords(culprit)), shareWords(spentShare), timeWords(of.quota), culprit.widest, poolWords(victim),
		timeWords(victim.stopped), timeWords(of.window), late)
	return f, true
}

// works says whether a pool does a part of the work rather than look in now and then.
func (p *pool) works(of *figures) bool { return float64(p.cpu) >= victimWork*float64(of.cpu) }

func (p *pool) stopsItself(of *figures) bool {
	most, mean := float64(p.most[of.track]), float64(p.cpu)*float64(of.period)/float64(of.window)
	return most > selfMost*float64(of.quota) && most > selfSwing*mean
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
