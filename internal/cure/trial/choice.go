package trial

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// alpha is the level at which a trial may be wrong: keep what is no better, or say that nothing is better where something is. All
	// variants of a trial share it. It is below the 5 in 100 cases that are promised, because a trial is looked at several times and
	// latencies' logarithms have longer tails than a normal distribution (docs/results/trial.md has what comes of it).
	alpha = 0.03
	// early is the part of it with which one look before the end of the budget may decide: a trial is looked at after each round.
	early = 0.25
	// supported is the level at which a variant is better that also shortens stops to less than shortened, beyond chance: what was slow
	// were stops, and the kernel's own count says that they are gone, so that the latency has less to prove. Both could be wrong for a
	// variant that changes nothing only where both are.
	supported, shortened = 0.2, 0.7
	// mostMissed is the gain that must be ruled out for "nothing is better": less could not be told in minutes.
	mostMissed = 0.25
)

// Answer is what a trial says.
type Answer int

// Best: a variant is better than leaving it, and stays. NoneBetter: none is, by a gain that the reason names. Undecided: what was
// measured does not tell in this time. TooFew: too few requests came, so that nothing was measured.
const (
	TooFew Answer = iota
	Undecided
	NoneBetter
	Best
)

// Choice is the outcome of a trial.
type Choice struct {
	Answer Answer
	// Variant is to be left in force; 0: to leave it as it is.
	Variant int
	// Why is one sentence.
	Why string
	// Rounds is how many rounds would tell, as far as can be foreseen; 0: it is decided, or no number of them is foreseen.
	Rounds int
}

// level is the part of alpha that a variant may be wrong by: half of it is for what the forecast would choose, its family together, which
// no other one was drawn against.
func (t *Trial) level(v int) float64 {
	others, expected := 0, 0
	for i := 1; i < len(t.variants); i++ {
		if t.variants[i].Expected {
			expected++
		} else {
			others++
		}
	}
	part, among := alpha, others
	if t.variants[v].Expected {
		among = expected
	}
	if expected > 0 && others > 0 {
		part /= 2
	}
	return part / float64(max(1, among))
}

// candidates are the variants that may win so far, leaving it the first, and their latencies in ms; false: nothing is known of leaving it.
func (t *Trial) candidates(f fitted) (all []int, ms map[int]float64, ok bool) {
	ms = map[int]float64{}
	for v := range t.variants {
		if f.turns[v] == 0 || t.harms(v) != "" || v > 0 && t.out[v] != "" {
			continue
		}
		all, ms[v] = append(all, v), math.Exp(f.mean[v])
	}
	return all, ms, f.turns[0] > 0
}

// leader is the variant that wins as far as can be told: leaving it if that is equal to the lowest; else, of those that are equal to the
// lowest and of which no other setting of the same remedy is stopped less, the one that changes least, then the one whose turns differ
// less.
func (t *Trial) leader(all []int, ms map[int]float64) int {
	best, leader := math.Inf(1), -1
	for _, v := range all {
		best = min(best, ms[v])
	}
	alike := slices.DeleteFunc(slices.Clone(all), func(v int) bool { return !stats.Alike(best, ms[v]) })
	for _, v := range alike {
		if v > 0 && slices.ContainsFunc(alike, func(other int) bool { return t.stoppedLonger(v, other) }) {
			continue
		}
		if leader < 0 || t.before(v, leader) {
			leader = v
		}
	}
	return leader
}

// stoppedLonger reports whether quotas stopped a variant for longer than another one of the same remedy.
func (t *Trial) stoppedLonger(v, other int) bool {
	if t.variants[v].Remedy != t.variants[other].Remedy {
		return false
	}
	of := func(m turn) *float64 { return m.Stopped }
	is, was := t.meanOf(v, of), t.meanOf(other, of)
	return is != nil && was != nil && stats.StoppedLonger(*is, *was)
}

// before reports whether of two equal variants the first is to be preferred.
func (t *Trial) before(a, b int) bool {
	if ca, cb := t.variants[a].Change, t.variants[b].Change; ca != cb {
		return ca < cb
	}
	return t.unsteady(a) < t.unsteady(b)
}

// unsteady is how far the turns of a variant differ, as a logarithm.
func (t *Trial) unsteady(v int) float64 {
	var all []float64
	for _, m := range t.turns[v] {
		if !math.IsNaN(m.tail) {
			all = append(all, m.tail)
		}
	}
	if len(all) == 0 {
		return math.Inf(1)
	}
	return slices.Max(all) - slices.Min(all)
}

// shortens reports whether a variant is stopped for less than shortened of the time for which leaving it is, beyond what turns differ by
// themselves.
func (t *Trial) shortens(v int) bool {
	f := t.fit(func(m turn) float64 {
		if m.Stopped == nil {
			return math.NaN()
		}
		return math.Log(*m.Stopped + stats.LeastStopped)
	})
	_, _, high, ok := f.ratio(v, 0, alpha)
	return ok && f.turns[v] >= leastRounds && f.turns[0] >= leastRounds && high < shortened
}

// better reports whether a variant gains on leaving it what is worth a change, and that it gains is beyond chance at a part of its level.
func (t *Trial) better(f fitted, v int, part float64) bool {
	level := t.level(v)
	if t.shortens(v) {
		level = supported
	}
	by, _, high, ok := f.ratio(v, 0, part*level)
	was := math.Exp(f.mean[0])
	return ok && f.turns[v] >= leastRounds && f.turns[0] >= leastRounds && high < 1 && stats.Gains(was, was*by) && t.lifts(v, 0.5) == ""
}

// missed is the gain that a variant may have and was not seen to have, as a share; 0: it has none in any case.
func (t *Trial) missed(f fitted, v int, part float64) float64 {
	was := math.Exp(f.mean[0])
	_, low, _, ok := f.ratio(v, 0, part*alpha/float64(max(1, len(t.variants)-1)))
	switch {
	case t.out[v] != "" || t.harms(v) != "":
		return 0
	case !ok:
		return 1
	case was-was*low < stats.LeastGainMs:
		return 0
	}
	return max(0, 1-low)
}

// Settled reports whether more rounds would tell nothing new: each variant that is still in had two, and the leader is better than
// leaving it and than all others, or equal to these; or none can be.
func (t *Trial) Settled() bool {
	f := t.fit(tail)
	all, ms, ok := t.candidates(f)
	if !ok {
		return false
	}
	contenders, leader := t.contenders(), t.leader(all, ms)
	for _, v := range contenders {
		if len(t.turns[v]) < leastRounds {
			return false
		}
	}
	if leader == 0 {
		return !slices.ContainsFunc(contenders, func(v int) bool { return v > 0 && t.missed(f, v, early) > mostMissed })
	}
	if !t.better(f, leader, early) {
		return false
	}
	for _, v := range all {
		if v == 0 || v == leader || !slices.Contains(contenders, v) || stats.Alike(ms[leader], ms[v]) && stats.Alike(ms[v], ms[leader]) {
			continue
		}
		if _, low, _, ok := f.ratio(v, leader, alpha); !ok || low <= 1 {
			return false
		}
	}
	return true
}

// Choice says what to leave in force.
func (t *Trial) Choice() Choice {
	f := t.fit(tail)
	all, ms, ok := t.candidates(f)
	if !ok || f.turns[0] < leastRounds {
		return Choice{Why: fmt.Sprintf("too few requests came within the trial to tell: %d in %s while it was left as it is, and each "+
			"needs %d", len(t.pooled(0).TookMs), text.Count(len(t.turns[0]), "turn"), leastOfRound)}
	}
	leader := t.leader(all, ms)
	for v, variant := range t.variants { // of several that the forecast would choose, none is preferred to the lowest
		if variant.Expected && !t.variants[leader].Expected && slices.Contains(all, v) && t.better(f, v, 1) &&
			!t.stoppedLonger(v, leader) {
			if _, low, _, ok := f.ratio(v, leader, alpha); !ok || low <= 1 {
				leader = v
			}
		}
	}
	if leader > 0 && t.better(f, leader, 1) {
		return Choice{Answer: Best, Variant: leader, Why: t.won(leader)}
	}
	// Of those that are better beyond chance any is better than none.
	for _, v := range all {
		if v > 0 && t.better(f, v, 1) {
			return Choice{Answer: Best, Variant: v, Why: t.won(v)}
		}
	}
	most, likeliest := 0.0, 0
	for v := 1; v < len(t.variants); v++ {
		if missed := t.missed(f, v, 1); missed > most {
			most, likeliest = missed, v
		}
	}
	if !slices.ContainsFunc(t.turns[1:], func(of []turn) bool { return len(of) > 0 }) {
		return Choice{Answer: NoneBetter, Why: "no remedy could be tried: " + text.EachOnce(t.out[1:])}
	}
	if most <= mostMissed {
		return Choice{Answer: NoneBetter, Why: fmt.Sprintf("nothing that keeps the limit was better than leaving it; a gain of more than %.0f %% "+
			"would have been seen", math.Ceil(100*max(most, stats.LeastGain)))}
	}
	if leader > 0 {
		likeliest = leader
	}
	return t.undecided(f, likeliest)
}

// undecided says of which variant more rounds would tell, and how many.
func (t *Trial) undecided(f fitted, v int) Choice {
	name := t.variants[v].Name
	if f.turns[v] < leastRounds {
		return Choice{Answer: Undecided, Why: fmt.Sprintf("too few requests came in the turns of %s", name)}
	}
	is, _ := t.value(v)
	was, _ := t.value(0)
	c := Choice{Answer: Undecided, Why: fmt.Sprintf("%s measured %.3g ms, and %.3g when left as it is; turns of one "+
		"and the same differ by %.0f %% by themselves", name, is, was, 100*(math.Exp(f.scatter)-1))}
	// What is to be told: that it gains, or that it does not gain mostMissed, whichever is nearer.
	by := f.mean[v] - f.mean[0]
	apart := max(math.Abs(by), by-math.Log(1-mostMissed))
	for rounds := f.turns[v] + 1; rounds <= mostRounds; rounds++ {
		freedom := f.freedom + 2*(rounds-f.turns[v])
		if apart > stats.StudentT(1-t.level(v), freedom)*f.scatter*math.Sqrt(2/float64(rounds)) {
			c.Rounds = rounds
			break
		}
	}
	return c
}

// mostRounds is how many rounds may be foreseen.
const mostRounds = 200

// won says how a variant won.
func (t *Trial) won(v int) string {
	lower, of := 0, 0
	for i := range min(len(t.turns[v]), len(t.turns[0])) {
		was, is := t.turns[0][i].tail, t.turns[v][i].tail
		if math.IsNaN(was) || math.IsNaN(is) {
			continue
		}
		if of++; is < was {
			lower++
		}
	}
	was, before := t.words(0)
	is, after := t.words(v)
	return fmt.Sprintf("%s: measured %s%s and %s when left as it is%s, lower in %d of %s", t.variants[v].Name, is, after, was, before, lower,
		text.Count(of, "round"))
}

// words are the judged quantile of a variant and its interval; "": so few requests tell none.
func (t *Trial) words(v int) (value, interval string) {
	ms, _ := t.value(v)
	if s, ok := t.spread(v); ok {
		ms, interval = s.Value, fmt.Sprintf(" (%.3g to %.3g)", s.Low, s.High)
	}
	return fmt.Sprintf("%.3g ms", ms), interval
}

// Lasts is how long a trial of so many rounds takes, of leaving a container and the remedies that are still in, in turns of a
// length.
func (t *Trial) Lasts(rounds int, turn time.Duration) time.Duration {
	others := (len(t.variants) - min(len(t.variants), 1+mostContenders)) * leastRounds
	return time.Duration(rounds*min(len(t.variants), 1+mostContenders)+others) * turn
}
