// Package lendingtrial measures what sharing its idle CPUs costs an owner of exclusive CPUs, as a value: looks in, orders out.
package lendingtrial

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// What a trial rests on.
const (
	// Rounds is how many rounds' time the owner is looked at, lent and not
	// lent. On a busy host rounds come late and in heaps: it is their time that
	// counts, and one that began before the last write belongs to neither.
	Rounds = 5
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
	// Interval is how often an owner that was not harmed is looked at again,
	// changeInterval how often if it uses more or less than it did.
	Interval       = 10 * time.Minute
	changeInterval = 2 * time.Minute
)

// Order is what a trial wants done.
type Order int

// What a trial wants done.
const (
	Nothing Order = iota
	Revoke        // take the shared CPUs from the secondaries
	Grant         // give them back
)

// interval is what was used over some time.
type interval struct {
	cpuSeconds float64
	length     time.Duration
	end        time.Time
}

// use is the mean in CPUs.
func (s interval) use() float64 { return s.cpuSeconds / s.length.Seconds() }

// Look is one look at an owner.
type Look struct {
	CPUs string // that it lends
	Out  bool   // they are revoked now
	// Kept is since when they are revoked for good, as lending harmed the owner; zero: they are not, or on trial only.
	Kept time.Time
	// Seen is what was observed of it; nil: nothing.
	Seen *observe.Observation
	// Lasts is how long an interval lasts. Again is after how long an owner that was harmed is lent from anew.
	Lasts, Again time.Duration
	// Latencies asks the owner's own source for those since a time; nil: there is
	// none. Quantile is judged.
	Latencies func(since time.Time) []float64
	Quantile  float64
}

// ask gives the owner's latencies; nil: there is no source, or it failed.
func (l Look) ask(since time.Time) []float64 {
	if l.Latencies == nil {
		return nil
	}
	return l.Latencies(since)
}

// Trial measures for one owner what sharing its idle CPUs costs it. It compares the
// CPU use and, where there is a source, the latencies, with the CPUs shared and
// revoked by turns, because load varies by itself. The first pair without a
// difference ends the trial.
type Trial struct {
	cpus     string    // that it is about: others are another trial
	out      bool      // revoked now
	Running  bool      // it goes on
	since    time.Time // rounds that began before belong to no interval
	interval interval
	// With and Without are the use, in CPUs, in the intervals of the trial under way, or of the last one.
	With, Without []float64
	lent          []float64 // latencies in the last interval with
	Slower        []bool    // pair by pair: latencies were worse with the CPUs lent
	Unjudged      string    // why the latencies of a pair told nothing; "": they did, or there is no source
	usual         float64   // use with the CPUs lent, as last found
	next          time.Time
	Harmed        bool // sharing costs the owner something
}

// Round takes one observation and says what to do next. If another program granted
// or revoked the CPUs, the trial begins again.
func (t *Trial) Round(l Look, now time.Time) Order {
	o := l.Seen
	switch {
	case t.cpus != l.CPUs:
		anew := t.cpus == ""
		*t = Trial{cpus: l.CPUs, out: l.Out, Running: true, since: now}
		switch {
		case anew && !l.Kept.IsZero(): // an agent before this one found the harm
			t.Harmed, t.Running, t.next = true, false, l.Kept.Add(l.Again)
			return Nothing
		case l.Out: // by an agent before this one that did not find out, or for other CPUs
			return t.give()
		}
		return Nothing
	case t.out != l.Out:
		*t = Trial{cpus: l.CPUs, out: l.Out, since: now, next: now.Add(changeInterval), usual: t.usual}
		return Nothing
	case t.Harmed && !now.Before(t.next):
		// Lent again after a while, and looked at anew.
		*t = Trial{cpus: l.CPUs, Running: true}
		return t.give()
	case t.Harmed || o == nil || o.UsedCPUs == nil || o.Start.Before(t.since):
		return Nothing
	}
	if o.Start.Sub(t.interval.end) > l.Lasts {
		t.interval = interval{} // too long ago to be one with this
	}
	t.interval.end = o.Start.Add(o.Window)
	t.interval.cpuSeconds += *o.UsedCPUs * o.Window.Seconds()
	if t.interval.length += o.Window; t.interval.length < l.Lasts {
		return Nothing
	}
	use, began := t.interval.use(), t.interval.end.Add(-t.interval.length)
	t.interval = interval{}
	switch {
	case !t.Running && !t.due(use, now):
		return Nothing
	case !t.Running:
		// This interval is the first with.
		t.With, t.Without, t.Slower, t.Unjudged, t.Running = nil, nil, nil, "", true
		fallthrough
	case !t.out:
		t.With, t.usual, t.lent = append(t.With, use), use, l.ask(began)
		return t.take()
	}
	t.Without = append(t.Without, use)
	judged := verdict.Judge(verdict.Evidence{Quantile: l.Quantile, Before: l.ask(began), After: t.lent})
	t.Slower = append(t.Slower, judged.Verdict == verdict.Worse)
	if l.Latencies != nil && judged.Verdict == verdict.Unverified {
		t.Unjudged = judged.Why
	}
	switch {
	case !t.usesLess() && slices.Contains(t.Slower, false):
		t.Running, t.next = false, now.Add(Interval)
		return t.give()
	case len(t.Without) == trialPairs:
		t.Harmed, t.Running, t.next = true, false, now.Add(l.Again)
		return Nothing
	}
	return t.give()
}

// Written notes that the order was carried out.
func (t *Trial) Written(now time.Time) { t.since, t.interval = now, interval{} }

// due tells between trials whether another one is.
func (t *Trial) due(use float64, now time.Time) bool {
	changed := more(t.usual, use) || more(use, t.usual)
	return !now.Before(t.next) || changed && !now.Before(t.next.Add(changeInterval-Interval))
}

func (t *Trial) give() Order {
	t.out = false
	return Grant
}

func (t *Trial) take() Order {
	t.out = true
	return Revoke
}

// usesLess tells whether the owner used more in every interval without lending than
// in every one with it.
func (t *Trial) usesLess() bool { return more(slices.Min(t.Without), slices.Max(t.With)) }

// more tells whether one use is above another by enough to count.
func more(a, b float64) bool { return a-b > harmCPUs && a > b*(1+harmShare) }
