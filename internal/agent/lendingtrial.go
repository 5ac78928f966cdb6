package agent

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// What a trial rests on.
const (
	// spellRounds is how many rounds' time the owner is looked at, lent and not
	// lent. On a busy host rounds come late and in heaps: it is their time that
	// counts, and one that began before the last write belongs to neither.
	spellRounds = 5
	// trialPairs is how often lent and not lent take turns before it counts as
	// harm: if lending changed nothing, all three intervals without it would come
	// out above all three with it in 1 of 20 cases only.
	trialPairs = 3
	// The same holds of latencies: those of each pair must be worse with it.
	//
	// harmShare is the part of its CPU use, and harmCPUs the CPUs, that an owner
	// must gain while nothing is lent for lending to count as harm: what it does
	// varies by itself.
	harmShare, harmCPUs = 0.1, 0.05
	// trialInterval is how often an owner that was not harmed is looked at again,
	// changeInterval how often if it uses more or less than it did.
	trialInterval  = 10 * time.Minute
	changeInterval = 2 * time.Minute
)

// order is what a trial wants done.
type order int

const (
	nothing      order = iota
	revokeShared       // from the secondaries
	grant
)

// interval is what was used over some time.
type interval struct {
	cpuSeconds float64
	length     time.Duration
	end        time.Time
}

// use is the mean in CPUs.
func (s interval) use() float64 { return s.cpuSeconds / s.length.Seconds() }

// look is one look at an owner.
type look struct {
	cpus string // that it lends
	out  bool   // they are revoked now
	seen *observe.Observation
	// An interval lasts so long.
	lasts time.Duration
	// latencies asks the owner's own source for those since a time; nil: there is
	// none. quantile is judged.
	latencies func(since time.Time) []float64
	quantile  float64
}

// ask gives the owner's latencies; nil: there is no source, or it failed.
func (l look) ask(since time.Time) []float64 {
	if l.latencies == nil {
		return nil
	}
	return l.latencies(since)
}

// lendingTrial measures for one owner what sharing its idle CPUs costs it. It compares the
// CPU use and, where there is a source, the latencies, with the CPUs shared and
// revoked by turns, because load varies by itself. The first pair without a
// difference ends the trial.
type lendingTrial struct {
	cpus     string // that it is about: others are another trial
	out      bool   // revoked now
	running  bool
	since    time.Time // rounds that began before belong to no interval
	interval interval
	// Use in the intervals of the trial under way, or of the last one.
	with, without []float64
	lent          []float64 // latencies in the last interval with
	slower        []bool    // pair by pair: latencies were worse with the CPUs lent
	unjudged      string    // why the latencies of a pair told nothing; "": they did, or there is no source
	usual         float64   // use with the CPUs lent, as last found
	next          time.Time
	harmed        bool
}

// round takes one observation and says what to do next. If another program granted
// or revoked the CPUs, the trial begins again.
func (t *lendingTrial) round(l look, now time.Time) order {
	o := l.seen
	switch {
	case t.cpus != l.cpus:
		*t = lendingTrial{cpus: l.cpus, out: l.out, running: true, since: now}
		if l.out { // by an agent before this one, or for other CPUs
			return t.give()
		}
		return nothing
	case t.out != l.out:
		*t = lendingTrial{cpus: l.cpus, out: l.out, since: now, next: now.Add(changeInterval), usual: t.usual}
		return nothing
	case t.harmed && !now.Before(t.next):
		// Lent again after a while, and looked at anew.
		*t = lendingTrial{cpus: l.cpus, running: true}
		return t.give()
	case t.harmed || o == nil || o.UsedCPUs == nil || o.Start.Before(t.since):
		return nothing
	}
	if o.Start.Sub(t.interval.end) > l.lasts {
		t.interval = interval{} // too long ago to be one with this
	}
	t.interval.end = o.Start.Add(o.Window)
	t.interval.cpuSeconds += *o.UsedCPUs * o.Window.Seconds()
	if t.interval.length += o.Window; t.interval.length < l.lasts {
		return nothing
	}
	use, began := t.interval.use(), t.interval.end.Add(-t.interval.length)
	t.interval = interval{}
	switch {
	case !t.running && !t.due(use, now):
		return nothing
	case !t.running:
		// This interval is the first with.
		t.with, t.without, t.slower, t.unjudged, t.running = nil, nil, nil, "", true
		fallthrough
	case !t.out:
		t.with, t.usual, t.lent = append(t.with, use), use, l.ask(began)
		return t.take()
	}
	t.without = append(t.without, use)
	judged := verdict.Judge(verdict.Evidence{Quantile: l.quantile, Before: l.ask(began), After: t.lent})
	t.slower = append(t.slower, judged.Verdict == verdict.Worse)
	if l.latencies != nil && judged.Verdict == verdict.Unverified {
		t.unjudged = judged.Why
	}
	switch {
	case !t.usesLess() && slices.Contains(t.slower, false):
		t.running, t.next = false, now.Add(trialInterval)
		return t.give()
	case len(t.without) == trialPairs:
		t.harmed, t.running, t.next = true, false, now.Add(retryAfter)
		return nothing
	}
	return t.give()
}

// written notes that the order was carried out.
func (t *lendingTrial) written(now time.Time) { t.since, t.interval = now, interval{} }

// due tells between trials whether another one is.
func (t *lendingTrial) due(use float64, now time.Time) bool {
	changed := more(t.usual, use) || more(use, t.usual)
	return !now.Before(t.next) || changed && !now.Before(t.next.Add(changeInterval-trialInterval))
}

func (t *lendingTrial) give() order {
	t.out = false
	return grant
}

func (t *lendingTrial) take() order {
	t.out = true
	return revokeShared
}

// usesLess tells whether the owner used more in every interval without lending than
// in every one with it.
func (t *lendingTrial) usesLess() bool { return more(slices.Min(t.without), slices.Max(t.with)) }

// more tells whether one use is above another by enough to count.
func more(a, b float64) bool { return a-b > harmCPUs && a > b*(1+harmShare) }
