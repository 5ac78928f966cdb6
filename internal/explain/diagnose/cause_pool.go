package diagnose

import (
	"fmt"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// poolSpent is the least share of the CPU time in throttled periods that a pool must spend to stop
	// another pool. victimSpent is the largest share of the stopped pool: with more it stops itself.
	poolSpent   = 0.5
	victimSpent = 1.0 / 3
	// A pool comes in bursts of its own if it used more than selfMost of the quota in a period, and selfSwing
	// times its average. The quota would stop it without the other pool too.
	selfMost  = 0.6
	selfSwing = 2.5
	// The quota must have held threads of the victim back for victimStopped of the stopped time, in at least
	// victimHolds intervals. From victimLead on, and with victimWork of all CPU time, this is the first
	// cause. Below, its threads hardly work, as those of a runtime, and another cause that fits comes first.
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
		// Of several victims, the one that works comes first, then the one that lost the most time.
		if victim == nil || p.doesWork(of) && !victim.doesWork(of) || p.doesWork(of) == victim.doesWork(of) && p.stopped > victim.stopped {
			victim = p
		}
	}
	if victim == nil {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(victim.stopped, of.stopped), severity: of.quotaSeverity(), rank: rankPoolToo}
	if victim.doesWork(of) && float64(victim.stopped) >= victimLead*float64(of.stopped) {
		f.rank = rankPool
	}
	if of.longRuns() { // the pool stops itself first, whichever other pools it stops with it
		f.rank = rankPoolToo
	}
	spentShare := float64(culprit.throttled[of.track]) / float64(all)
	f.evidence = fmt.Sprintf("%s, which used %s of the CPU time in throttled periods, was held back for %s in %s; %s used %s",
		formatPool(victim), formatShare(float64(victim.throttled[of.track])/float64(all)), formatTime(victim.stopped),
		text.Count(victim.holds, "interval"), formatPool(culprit), formatShare(spentShare))
	late := ""
	if q := victim.delay.quantiles(); q != nil {
		late = fmt.Sprintf(" (99th percentile of its delay: %s)", formatTime(q.P99.Nanoseconds()))
	}
	f.verdict = fmt.Sprintf("%s spent %s of the %s quota, up to %d wide, and stopped %s with it for %s of %s%s.",
		capital(formatPool(culprit)), formatShare(spentShare), formatTime(of.quota), culprit.widest, formatPool(victim),
		formatTime(victim.stopped), formatTime(of.window), late)
	return f, true
}

// doesWork reports whether a pool does a part of the work, rather than only wake up now and then.
func (p *pool) doesWork(of *figures) bool { return float64(p.cpu) >= victimWork*float64(of.cpu) }

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
