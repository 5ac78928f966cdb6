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

func poolStopsPool(recorded *figures) (found, bool) {
	if !recorded.throttled() || recorded.ownStopped == 0 || len(recorded.pools) < 2 {
		return found{}, false
	}
	all := int64(0)
	for _, p := range recorded.pools {
		all += p.throttled[recorded.track]
	}
	if all <= 0 {
		return found{}, false
	}
	culprits := recorded.culprits(all)
	victim := recorded.victim(all, culprits)
	if victim == nil || len(culprits) == 0 || len(culprits) > 1 && !victim.serves(recorded) {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(victim.stopped, recorded.stopped), severity: recorded.quotaSeverity(),
		rank: recorded.rankOf(victim, culprits)}
	f.suffers = victim.key.name
	spent, who := int64(0), "pool"
	for i, p := range culprits {
		f.guilty = append(f.guilty, p.key.name)
		spent += p.throttled[recorded.track]
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
	f.near = spentShare < recorded.needSpent(culprits)+nearShare
	f.evidence = fmt.Sprintf("%s, which used %s of the CPU time in throttled periods, was held back for %s in %s; %s used %s",
		formatPool(victim), formatShare(float64(victim.throttled[recorded.track])/float64(all)), formatTime(victim.stopped),
		text.Count(victim.holds, "interval"), who, formatShare(spentShare))
	late := ""
	if q := victim.response.quantiles(); q != nil {
		late = fmt.Sprintf(" (99th percentile of its responses: %s)", formatTime(q.P99.Nanoseconds()))
	}
	f.verdict = fmt.Sprintf("%s spent %s of the %s quota, up to %d wide, and stopped %s with it for %s of %s%s.",
		capital(who), formatShare(spentShare), formatTime(recorded.quota), culprits[0].widest, formatPool(victim),
		formatTime(victim.stopped), formatTime(recorded.window), late)
	return f, true
}

// culprits are the pools that spent the quota: one with poolSpent of all, and beside it one that is too large for a
// victim; or two such.
func (recorded *figures) culprits(all int64) []*pool {
	var large []*pool
	sum := int64(0)
	for _, p := range recorded.pools[:2] {
		if float64(p.throttled[recorded.track]) > victimSpent*float64(all) {
			large = append(large, p)
			sum += p.throttled[recorded.track]
		}
	}
	if float64(sum) < recorded.needSpent(large)*float64(all) {
		return nil
	}
	return large
}

// needSpent is the share that pools must spend to stop another one.
func (recorded *figures) needSpent(large []*pool) float64 {
	if recorded.answered < leastAnswers || slices.ContainsFunc(large, func(p *pool) bool { return p.answers(recorded) }) {
		return poolSpent
	}
	return backgroundSpent
}

// victim is the pool that is stopped with others; nil: none is. Of several, the ones that work come first, then those
// that answer with short runs, then the one that lost the most time.
func (recorded *figures) victim(all int64, culprits []*pool) (victim *pool) {
	for _, p := range recorded.pools {
		if slices.Contains(culprits, p) || float64(p.throttled[recorded.track]) > victimSpent*float64(all) || p.holds < victimHolds ||
			p.helper || p.stopsItself(recorded) ||
			recorded.answered >= leastAnswers && !p.answers(recorded) || // nobody waits for a collector's helper
			float64(p.stopped) < victimStopped*float64(recorded.stopped) {
			continue
		}
		if victim == nil || p.suffers(recorded) > victim.suffers(recorded) ||
			p.suffers(recorded) == victim.suffers(recorded) && p.stopped > victim.stopped {
			victim = p
		}
	}
	return victim
}

// suffers ranks a stopped pool among others: 2 if it answers with short runs, 1 if it works, else 0.
func (p *pool) suffers(recorded *figures) int {
	switch {
	case p.serves(recorded) && float64(p.cost.typical()) <= shortRun*float64(recorded.quota):
		return 2
	case p.doesWork(recorded):
		return 1
	}
	return 0
}

// rankOf is the rank of a pool that stops another. One that answers clients, and for which the limit would do, is
// starved, whatever else the container wants.
func (recorded *figures) rankOf(victim *pool, culprits []*pool) int {
	switch {
	case recorded.oneChain(victim, culprits):
		return rankPoolToo
	case !victim.answers(recorded) && (!victim.doesWork(recorded) || float64(victim.stopped) < victimLead*float64(recorded.stopped)):
		return rankPoolToo
	case victim.serves(recorded) && recorded.limit > 0 && float64(victim.cpu) < servedBy*recorded.limit*float64(recorded.window):
		return rankStarved
	case recorded.longRuns(): // the pool stops itself first, whichever other pools it stops with it
		return rankPoolToo
	}
	return rankPool
}

// oneChain reports whether culprits work for the same requests as the victim, which waits for them anyhow: they wake it for most of
// what it does, or it wakes them for most of what it answers.
func (recorded *figures) oneChain(victim *pool, culprits []*pool) bool {
	woken, wakes := 0, 0
	for _, p := range culprits {
		woken += victim.woken.by[p.number]
		wakes += p.woken.by[victim.number]
	}
	return woken > 0 && float64(woken) >= ofOneChain*float64(victim.woken.all) ||
		wakes > 0 && victim.answers(recorded) && float64(wakes) >= ofOneChain*float64(victim.answered)
}

// threadStopsPool finds a thread that spends the quota in long runs, such as a report, and stops the other threads of
// its own pool with it, which
// answer with short ones. The pool as a whole looks like a burst.
func threadStopsPool(recorded *figures) (found, bool) {
	p := recorded.spender()
	if p == nil || !recorded.throttled() || recorded.ownStopped == 0 || !recorded.quotaKnown() || p.threads < 2 ||
		p.holds < victimHolds || !p.answers(recorded) {
		return found{}, false
	}
	most := int64(0)
	for _, d := range p.byThread {
		most = max(most, d)
	}
	runs, typical := p.cost.narrowRuns+p.cost.wideRuns, p.cost.typical()
	if float64(most) < poolSpent*float64(recorded.cpu) || typical <= recorded.quota || runs < minRuns ||
		float64(typical)*float64(runs) <= oneKind*float64(p.cost.narrow+p.cost.wide) {
		return found{}, false
	}
	f := found{cause: Pool, stopped: min(p.stopped, recorded.stopped), severity: recorded.quotaSeverity(), rank: rankStarved,
		guilty: []string{p.key.name}, suffers: p.key.name}
	f.evidence = fmt.Sprintf("one of %s of %s used %s of the CPU time; its runs take %s, and a run of the pool takes "+
		"%s on average", text.Count(p.threads, "thread"),
		formatPool(p), formatShare(float64(most)/float64(recorded.cpu)), formatTime(typical),
		formatTime((p.cost.narrow+p.cost.wide)/int64(runs)))
	f.verdict = fmt.Sprintf("One of %s of %s spent most of the %s quota in runs of %s, and stopped the others, which "+
		"answer in short ones, with it for %s of %s.",
		text.Count(p.threads, "thread"), formatPool(p), formatTime(recorded.quota), formatTime(typical),
		formatTime(f.stopped), formatTime(recorded.window))
	return f, true
}

// doesWork reports whether a pool does a part of the work, rather than only wake up now and then.
func (p *pool) doesWork(recorded *figures) bool {
	return float64(p.cpu) >= victimWork*float64(recorded.cpu)
}

func (p *pool) stopsItself(recorded *figures) bool {
	most, mean := float64(p.most[recorded.track]), float64(p.cpu)*float64(recorded.period)/float64(recorded.window)
	return most > selfMost*float64(recorded.quota) && most > selfSwing*mean &&
		float64(p.large[recorded.track]) >= selfOften*float64(recorded.sums.throttled)
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
