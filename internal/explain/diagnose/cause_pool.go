package diagnose

import (
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// poolSpent is the least share of the CPU time in throttled periods that a pool must spend to stop
	// another pool; backgroundSpent that of a pool which answers nobody while another one does: a compaction of 49 % beside
	// reads is what stops them. victimSpent is the largest share of the stopped pool: with more it stops itself.
	poolSpent       = 0.5
	backgroundSpent = 0.4
	victimSpent     = 1.0 / 3
	// A pool comes in bursts of its own if it used more than selfMost of the quota in selfOften of the throttled periods, and
	// selfSwing times its average. The quota would stop it without the other pool too.
	selfMost  = 0.6
	selfSwing = 2.5
	selfOften = 0.1
	// The quota must have held threads of the victim back for victimStopped of the stopped time, in at least
	// victimHolds intervals. From victimLead on, and with victimWork of all CPU time, this is the first
	// cause. Below, its threads hardly work, as those of a runtime, and another cause that fits comes first. A pool that is
	// seen to answer needs neither: a server with few requests hardly works, and each of them waits.
	victimStopped = 0.10
	victimLead    = 0.25
	victimWork    = 0.02
	victimHolds   = 3
	// ofOneChain is the share of a pool's wake-ups, or of its answers, from which on it works for the same requests as those that
	// wake it, or that it wakes. servedBy is the share of the limit that a pool may use and still be starved by others.
	ofOneChain = 0.5
	// shortRun is the part of a quota that the runs of a pool take which answers at once.
	shortRun = 0.1
	servedBy = 0.5
)

func poolStopsPool(of *figures) (found, bool) {
	if !of.throttled() || of.ownStopped == 0 || len(of.pools) < 2 {
		return found{}, false
	}
	all := int64(0)
	for _, p := range of.pools {
		all += p.throttled[of.track]
	}
	if all <= 0 {
		return found{}, false
	}
	culprits := of.culprits(all)
	victim := of.victim(all, culprits)
	if victim == nil || len(culprits) == 0 || len(culprits) > 1 && !victim.serves(of) {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(victim.stopped, of.stopped), severity: of.quotaSeverity(), rank: of.rankOf(victim, culprits)}
	f.suffers = victim.key.name
	spent, who := int64(0), "pool"
	for i, p := range culprits {
		f.guilty = append(f.guilty, p.key.name)
		spent += p.throttled[of.track]
		if i > 0 {
			who = "pools"
		}
	}
	for i, p := range culprits {
		if i > 0 {
			who += " and"
		}
		who += " `" + p.key.name + "`"
	}
	spentShare := float64(spent) / float64(all)
	f.near = spentShare < of.needSpent(culprits)+nearShare
	f.evidence = fmt.Sprintf("%s, which used %s of the CPU time in throttled periods, was held back for %s in %s; %s used %s",
		formatPool(victim), formatShare(float64(victim.throttled[of.track])/float64(all)), formatTime(victim.stopped),
		text.Count(victim.holds, "interval"), who, formatShare(spentShare))
	late := ""
	if q := victim.response.quantiles(); q != nil {
		late = fmt.Sprintf(" (99th percentile of its responses: %s)", formatTime(q.P99.Nanoseconds()))
	}
	f.verdict = fmt.Sprintf("%s spent %s of the %s quota, up to %d wide, and stopped %s with it for %s of %s%s.",
		capital(who), formatShare(spentShare), formatTime(of.quota), culprits[0].widest, formatPool(victim),
		formatTime(victim.stopped), formatTime(of.window), late)
	return f, true
}

// culprits are the pools that spent the quota: one with poolSpent of all, and beside it one that is too large for a
// victim; or two such.
func (of *figures) culprits(all int64) []*pool {
	var large []*pool
	sum := int64(0)
	for _, p := range of.pools[:2] {
		if float64(p.throttled[of.track]) > victimSpent*float64(all) {
			large = append(large, p)
			sum += p.throttled[of.track]
		}
	}
	if float64(sum) < of.needSpent(large)*float64(all) {
		return nil
	}
	return large
}

// needSpent is the share that pools must spend to stop another one.
func (of *figures) needSpent(large []*pool) float64 {
	if of.answered < leastAnswers || slices.ContainsFunc(large, func(p *pool) bool { return p.answers(of) }) {
		return poolSpent
	}
	return backgroundSpent
}

// victim is the pool that is stopped with others; nil: none is. Of several, the ones that work come first, then those
// that answer with short runs, then the one that lost the most time.
func (of *figures) victim(all int64, culprits []*pool) (victim *pool) {
	for _, p := range of.pools {
		if slices.Contains(culprits, p) || float64(p.throttled[of.track]) > victimSpent*float64(all) || p.holds < victimHolds ||
			p.stopsItself(of) || of.answered >= leastAnswers && !p.answers(of) || // nobody waits for a collector's helper
			float64(p.stopped) < victimStopped*float64(of.stopped) {
			continue
		}
		if victim == nil || p.suffers(of) > victim.suffers(of) || p.suffers(of) == victim.suffers(of) && p.stopped > victim.stopped {
			victim = p
		}
	}
	return victim
}

// suffers ranks a stopped pool among others: 2 if it answers with short runs, 1 if it works, else 0.
func (p *pool) suffers(of *figures) int {
	switch {
	case p.serves(of) && float64(p.cost.typical()) <= shortRun*float64(of.quota):
		return 2
	case p.doesWork(of):
		return 1
	}
	return 0
}

// rankOf is the rank of a pool that stops another. One that answers clients, and for which the limit would do, is
// starved, whatever else the container wants.
func (of *figures) rankOf(victim *pool, culprits []*pool) int {
	switch {
	case of.oneChain(victim, culprits):
		return rankPoolToo
	case !victim.answers(of) && (!victim.doesWork(of) || float64(victim.stopped) < victimLead*float64(of.stopped)):
		return rankPoolToo
	case victim.serves(of) && of.limit > 0 && float64(victim.cpu) < servedBy*of.limit*float64(of.window):
		return rankStarved
	case of.longRuns(): // the pool stops itself first, whichever other pools it stops with it
		return rankPoolToo
	}
	return rankPool
}

// oneChain reports whether culprits work for the same requests as the victim, which waits for them anyhow: they wake it for most of
// what it does, or it wakes them for most of what it answers.
func (of *figures) oneChain(victim *pool, culprits []*pool) bool {
	woken, wakes := 0, 0
	for _, p := range culprits {
		woken += victim.woken.by[p.number]
		wakes += p.woken.by[victim.number]
	}
	return woken > 0 && float64(woken) >= ofOneChain*float64(victim.woken.all) ||
		wakes > 0 && victim.answers(of) && float64(wakes) >= ofOneChain*float64(victim.answered)
}

// threadStopsPool finds a thread that spends the quota in long runs, such as a report, and stops the other threads of
// its own pool with it, which
// answer with short ones. The pool as a whole looks like a burst.
func threadStopsPool(of *figures) (found, bool) {
	p := of.spender()
	if p == nil || !of.throttled() || of.ownStopped == 0 || !of.quotaKnown() || p.threads < 2 || p.holds < victimHolds || !p.answers(of) {
		return found{}, false
	}
	most := int64(0)
	for _, d := range p.byThread {
		most = max(most, d)
	}
	runs, typical := p.cost.narrowRuns+p.cost.wideRuns, p.cost.typical()
	if float64(most) < poolSpent*float64(of.cpu) || typical <= of.quota || runs < minRuns ||
		float64(typical)*float64(runs) <= oneKind*float64(p.cost.narrow+p.cost.wide) {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(p.stopped, of.stopped), severity: of.quotaSeverity(), rank: rankStarved,
		guilty: []string{p.key.name}, suffers: p.key.name}
	f.evidence = fmt.Sprintf("one of %s of %s used %s of the CPU time; its runs take %s, and a run of the pool takes "+
		"%s on average", text.Count(p.threads, "thread"),
		formatPool(p), formatShare(float64(most)/float64(of.cpu)), formatTime(typical), formatTime((p.cost.narrow+p.cost.wide)/int64(runs)))
	f.verdict = fmt.Sprintf("One of %s of %s spent most of the %s quota in runs of %s, and stopped the others, which "+
		"answer in short ones, with it for %s of %s.",
		text.Count(p.threads, "thread"), formatPool(p), formatTime(of.quota), formatTime(typical),
		formatTime(f.stopped), formatTime(of.window))
	return f, true
}

// doesWork reports whether a pool does a part of the work, rather than only wake up now and then.
func (p *pool) doesWork(of *figures) bool { return float64(p.cpu) >= victimWork*float64(of.cpu) }

func (p *pool) stopsItself(of *figures) bool {
	most, mean := float64(p.most[of.track]), float64(p.cpu)*float64(of.period)/float64(of.window)
	return most > selfMost*float64(of.quota) && most > selfSwing*mean && float64(p.large[of.track]) >= selfOften*float64(of.sums.throttled)
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
