package trial

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// leastRounds is after how many rounds a variant may win.
	leastRounds = 2
	// worseOnce is from which multiple of the best on a variant is not tried again after one round, muchWorse after more.
	worseOnce, muchWorse = 2.0, 1.5
	// mostContenders is how many remedies are tried further beside leaving it once each had leastRounds: the time goes
	// to those that may win.
	mostContenders = 2
	// leastOfRound is how many requests a round needs to count by itself.
	leastOfRound = 20
	// twice is how often a turn must do harm for the variant to be out: once is chance, where rare work meets it.
	twice = 2
)

// Variant is one way to run the container.
type Variant struct {
	// Name is for people.
	Name string
	// Remedy is of which remedy it is a setting; "": leaving it.
	Remedy string
	// Change orders variants by how much they change; leaving it has the least.
	Change int
	// Expected: the forecast would choose it. Then less evidence is needed to keep it, and more to prefer another one: both alone are
	// wrong for other services.
	Expected bool
}

// Measured is what one turn of one variant showed.
type Measured struct {
	// Judged are the requests that are judged, or the runs of the judged pool; BeganMs is since the turn's start.
	Judged verdict.Requests
	// Others are the requests of other kinds, each kind at the same place in every turn.
	Others []verdict.Requests
	// Work are figures of what was asked of the container in the turn beside the judged requests, in the same order in every
	// turn, such as the CPU time of each thread pool per second: turns of other work differ, whatever the variant.
	Work []float64
	// Neighbours are the containers whose CPUs shrank, before and in this turn.
	Neighbours []verdict.Neighbour
	// OthersWaitMS is for how long the threads of other containers waited for a CPU, in ms a second, all together; nil: not measured.
	OthersWaitMS *float64
	// Stopped is for which part of the turn quotas stopped the container, as the kernel counts it; nil: not measured.
	Stopped *float64
	// Unsteady says why the turn does not show how the variant goes on, such as a quota that writing gave; "": it does.
	Unsteady string
	// Ended says why the turn was ended at once: the harm that it did; "": it was not.
	Ended string
	// Late is how long the request took that ended the turn; 0: none did.
	Late time.Duration
}

// turn is a turn with the logarithms of its judged quantile and of its median, in ms; NaN: it has too few requests.
type turn struct {
	Measured
	tail, half float64
}

// Trial is a trial under way. It is not safe for concurrent use.
type Trial struct {
	variants []Variant
	quantile float64
	promised bool
	turns    [][]turn // by variant
	out      []string // why a variant is not tried again; "": it is
	lost     []bool   // out by a comparison with another, which may have been lucky
	again    []bool   // tried again after that
	glances  []int    // short looks at a variant that were far worse
	// Neighbours is the share by which other containers' threads may wait longer for a CPU than when it is left: a variant that makes them
	// wait longer cannot win.
	Neighbours float64
}

// DefaultNeighbours is the default of Trial.Neighbours, and leastWaitMS by how many ms a second others must wait longer to count: a
// hundredth of a CPU.
const DefaultNeighbours, leastWaitMS = 0.5, 10.0

// New begins a trial. variants[0] is to leave it. quantile is judged, 0 to 1. promised: the user has an objective, above which no median
// stands.
func New(variants []Variant, quantile float64, promised bool) *Trial {
	return &Trial{variants: variants, quantile: quantile, promised: promised, turns: make([][]turn, len(variants)),
		out: make([]string, len(variants)), lost: make([]bool, len(variants)), again: make([]bool, len(variants)),
		glances: make([]int, len(variants)), Neighbours: DefaultNeighbours}
}

// contenders are the variants that are tried further: those that are not out, and of those that had their turns leaving it and the
// lowest.
func (t *Trial) contenders() (all []int) {
	var tried []int
	for v := range t.variants {
		switch {
		case t.out[v] != "":
		case v > 0 && len(t.turns[v]) >= leastRounds:
			tried = append(tried, v)
		default:
			all = append(all, v)
		}
	}
	if len(tried) > mostContenders {
		f := t.fit(tail)
		ms := func(v int) float64 {
			if t.harms(v) != "" {
				return math.Inf(1)
			}
			return f.at(v)
		}
		slices.SortStableFunc(tried, func(a, b int) int {
			if expected := t.variants[a].Expected; expected != t.variants[b].Expected {
				if expected {
					return -1
				}
				return 1
			}
			return cmp.Compare(ms(a), ms(b))
		})
		// The lowest goes on also where it seems to harm something: that may be chance, and more turns tell.
		lowest := slices.MinFunc(tried, func(a, b int) int { return cmp.Compare(f.at(a), f.at(b)) })
		if tried = tried[:mostContenders]; !slices.Contains(tried, lowest) && t.harmed(lowest) == 0 {
			tried = append(tried, lowest)
		}
	}
	return slices.Sorted(slices.Values(append(all, tried...)))
}

// Enter takes another variant in, which had no turn yet.
func (t *Trial) Enter(v Variant) {
	t.variants, t.turns, t.out = append(t.variants, v), append(t.turns, nil), append(t.out, "")
	t.lost, t.again, t.glances = append(t.lost, false), append(t.again, false), append(t.glances, 0)
}

// Lowest is the variant with the lowest latency so far that may win; 0: leaving it, or nothing is known.
func (t *Trial) Lowest() int {
	f, lowest := t.fit(tail), 0
	for v := range t.variants {
		if f.turns[v] > 0 && t.out[v] == "" && t.harms(v) == "" && f.mean[v] < f.mean[lowest] {
			lowest = v
		}
	}
	return lowest
}

// Order is the order of the next round.
func (t *Trial) Order(draw *rand.Rand) []int {
	order := t.contenders()
	draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Left is how many variants the next round has.
func (t *Trial) Left() int { return len(t.contenders()) }

// More reports whether another round is due: the trial is not settled, and the budget has room for the round; used was spent, and each turn
// takes a time. Two rounds are made in any case, as long as they do not take twice the budget.
func (t *Trial) More(used, each, budget time.Duration) bool {
	least := math.MaxInt
	for _, v := range t.contenders() {
		if !t.again[v] { // what is tried again has no claim to its two rounds
			least = min(least, len(t.turns[v]))
		}
	}
	if least > 0 && t.Settled() {
		return false
	}
	return used+time.Duration(t.Left())*each <= budget || least < leastRounds && used < 2*budget
}

// Add takes in a turn. It tells whether the variant is out now, and why; "": it stays.
func (t *Trial) Add(variant int, m Measured) (out string) {
	t.take(variant, m)
	if harmed := t.harmed(variant); m.Ended != "" && variant > 0 && harmed >= twice {
		t.Drop(variant, m.Ended)
		return m.Ended
	}
	t.drop()
	return t.out[variant]
}

// take keeps a turn.
func (t *Trial) take(variant int, m Measured) {
	sorted := slices.Sorted(slices.Values(m.Judged.TookMs))
	of := turn{m, math.NaN(), math.NaN()}
	if len(sorted) >= leastOfRound && m.Ended == "" { // one that was ended at once lacks the requests that wait
		of.tail, of.half = math.Log(stats.Rank(sorted, t.quantile)+tinyMs), math.Log(stats.Rank(sorted, 0.5)+tinyMs)
	}
	t.turns[variant] = append(t.turns[variant], of)
}

// harmed is how many turns of a variant were ended at once.
func (t *Trial) harmed(v int) (n int) {
	for _, m := range t.turns[v] {
		if m.Ended != "" {
			n++
		}
	}
	return n
}

// Readmit forgets the turns that a late request ended, where leaving it has shown since that requests take as long there: bound is from
// how long on one is a harm now. What was measured until it came does not count: it was cut off at a bad moment.
func (t *Trial) Readmit(bound time.Duration) {
	for v := range t.turns {
		kept := slices.DeleteFunc(slices.Clone(t.turns[v]), func(m turn) bool { return m.Late > 0 && m.Late <= bound })
		if len(kept) < len(t.turns[v]) {
			t.turns[v], t.out[v], t.lost[v] = kept, "", false
		}
	}
}

// ForgetFew forgets the turns that had too few requests to count, since longer ones come. What did harm stays.
func (t *Trial) ForgetFew() {
	for v := range t.turns {
		t.turns[v] = slices.DeleteFunc(t.turns[v], func(m turn) bool { return math.IsNaN(m.tail) && m.Ended == "" })
	}
}

// Glance judges a short look at a variant that was not measured yet. Where it is far worse the turn ends there, and why; at the second
// time the variant is out. Else nothing is kept of it. A short look tells less: it must be twice as bad as what is not tried again after
// a turn.
func (t *Trial) Glance(variant int, m Measured) (why string) {
	if m.Ended != "" {
		t.Add(variant, m)
		return m.Ended
	}
	left := t.pooled(0).TookMs
	q, ok := stats.Tells(min(len(m.Judged.TookMs), len(left)), t.quantile)
	if !ok {
		return ""
	}
	was, is := stats.Rank(slices.Sorted(slices.Values(left)), q), stats.Rank(slices.Sorted(slices.Values(m.Judged.TookMs)), q)
	if is < 2*worseOnce*was || is-was < stats.LeastGainMs {
		return ""
	}
	if t.glances[variant]++; t.glances[variant] < twice {
		return "far worse in a short look; it is looked at once more"
	}
	t.take(variant, m)
	t.Drop(variant, "clearly worse in two short looks")
	return t.out[variant]
}

// Turns is how many turns of a variant were measured.
func (t *Trial) Turns(variant int) int { return len(t.turns[variant]) }

// Out says why a variant is not tried again; "": it is.
func (t *Trial) Out(variant int) string { return t.out[variant] }

// Drop takes a variant out that cannot be tried.
func (t *Trial) Drop(variant int, why string) { t.out[variant], t.lost[variant] = why, false }

// Again reports whether a variant is tried again that had lost to another one.
func (t *Trial) Again(variant int) bool { return t.again[variant] }

// drop takes out what is clearly worse than the best, beyond what turns differ by themselves, once each that is still in has had a turn.
// While each has had only one nothing tells how far turns differ: then it must be worse in each part of its turn, at the same work.
// What is no worse than the best of those that are still in is tried again: the one that it lost to was lucky.
func (t *Trial) drop() {
	f, best := t.fit(tail), -1
	for v := range t.variants {
		if t.out[v] == "" && len(t.turns[v])+t.glances[v] == 0 {
			return
		}
		if f.turns[v] > 0 && t.harms(v) == "" && (best < 0 || f.mean[v] < f.mean[best]) {
			best = v
		}
	}
	for v := 1; v < len(t.variants); v++ {
		if best < 0 || v == best || t.out[v] != "" || f.turns[v] == 0 || math.Exp(f.mean[v])-math.Exp(f.mean[best]) < stats.LeastGainMs {
			continue
		}
		rounds := len(t.turns[v])
		_, low, _, ok := f.ratio(v, best, t.level(v)/2)
		beyond := ok && low > 1
		if rounds == 1 {
			beyond = t.inEachPart(v, best, worseOnce) && t.sameWork(v, best)
		}
		if beyond && f.mean[v]-f.mean[best] >= math.Log(worse(rounds)) {
			t.out[v], t.lost[v] = fmt.Sprintf("clearly worse after %s", text.Count(rounds, "round")), true
		}
	}
	in := -1
	for v := range t.variants {
		if t.out[v] == "" && f.turns[v] > 0 && t.harms(v) == "" && (in < 0 || f.mean[v] < f.mean[in]) {
			in = v
		}
	}
	for v := range t.variants {
		if in >= 0 && t.lost[v] && f.mean[v] <= f.mean[in] && t.harms(v) == "" {
			t.out[v], t.lost[v], t.again[v] = "", false, true
		}
	}
}

// sameWork reports whether as many requests came, and as much CPU time was used, in the turns of two variants.
func (t *Trial) sameWork(v, other int) bool {
	alike := func(a, b float64) bool { return a <= b*(1+verdict.SameWork) && b <= a*(1+verdict.SameWork) }
	is, was := t.pooled(v), t.pooled(other)
	return alike(float64(len(is.TookMs))/is.Window.Seconds(), float64(len(was.TookMs))/was.Window.Seconds()) && alike(is.CPUs, was.CPUs)
}

// worse is from which multiple of the best on a variant is out after so many rounds.
func worse(rounds int) float64 {
	if rounds == 1 {
		return worseOnce
	}
	return muchWorse
}

// pooled are the judged requests of all turns of a variant, as if the turns had followed each other.
func (t *Trial) pooled(v int) verdict.Requests {
	var requests verdict.Requests
	for _, m := range t.turns[v] {
		requests = appended(requests, m.Judged)
	}
	return requests
}

// pooledOther are those of another kind.
func (t *Trial) pooledOther(v, kind int) verdict.Requests {
	var requests verdict.Requests
	for _, m := range t.turns[v] {
		if kind < len(m.Others) {
			requests = appended(requests, m.Others[kind])
		}
	}
	return requests
}

// appended puts a turn after others. A request was answered within its turn, so that none seems to wait for one of the next.
func appended(requests, m verdict.Requests) verdict.Requests {
	from := requests.Window.Seconds() * 1000
	for i := range m.TookMs {
		requests.BeganMs, requests.TookMs = append(requests.BeganMs, from+m.BeganMs[i]), append(requests.TookMs, m.TookMs[i])
	}
	if window := requests.Window + m.Window; window > 0 {
		requests.CPUs = (requests.CPUs*requests.Window.Seconds() + m.CPUs*m.Window.Seconds()) / window.Seconds()
		requests.Window = window
	}
	return requests
}

// spread is value with its interval.
func (t *Trial) spread(v int) (verdict.Spread, bool) {
	requests := t.pooled(v)
	if len(requests.TookMs) < leastOfRound {
		return verdict.Spread{}, false
	}
	return verdict.SpreadOf(requests, t.quantile)
}

// value is the judged quantile of a variant over all of its turns; false: too few requests came.
func (t *Trial) value(v int) (float64, bool) { return t.quantileOf(t.pooled(v).TookMs) }

func (t *Trial) quantileOf(ms []float64) (float64, bool) {
	if len(ms) < leastOfRound {
		return 0, false
	}
	return stats.Rank(slices.Sorted(slices.Values(ms)), t.quantile), true
}

// harms says what a variant harms beside what is judged, against leaving it, beyond what turns differ by themselves; "": nothing.
func (t *Trial) harms(v int) string {
	if v == 0 {
		return ""
	}
	turns, all := 0, map[string]bool{}
	for _, m := range t.turns[v] {
		if _, harmed := verdict.Harmed(m.Neighbours); len(harmed) > 0 {
			turns++
			for _, name := range harmed {
				all[name] = true
			}
		}
	}
	if 2*turns > len(t.turns[v]) {
		return "containers whose CPUs shrank are stopped longer or use less: " + text.Names(slices.Sorted(maps.Keys(all)))
	}
	if ended := t.harmed(v); 2*ended >= len(t.turns[v]) && ended > 0 {
		return text.CountOf(ended, "of its turns was ended at once", "of its turns were ended at once")
	}
	if why := cmp.Or(t.unsteadyTurns(v), t.othersWait(v)); why != "" {
		return why
	}
	if why := t.lifts(v, alpha/2); why != "" {
		return why
	}
	for kind := range t.kinds() {
		was, is := t.pooledOther(0, kind).TookMs, t.pooledOther(v, kind).TookMs
		q, ok := t.told(min(len(was), len(is)))
		if !ok {
			continue
		}
		before, after := stats.Rank(slices.Sorted(slices.Values(was)), q), stats.Rank(slices.Sorted(slices.Values(is)), q)
		if after < stats.MuchHarm*before || after-before < stats.LeastGainMs {
			continue
		}
		if _, low, _, ok := t.fit(kindOf(kind, q)).ratio(v, 0, alpha/2); ok && low > 1 {
			return fmt.Sprintf("it harms other requests: from %.3g to %.3g ms", before, after)
		}
	}
	return ""
}

// othersWait says that a variant makes others wait longer than they may; "": it does not, beyond what turns differ by themselves.
func (t *Trial) othersWait(v int) string {
	f := t.fit(func(m turn) float64 {
		if m.OthersWaitMS == nil {
			return math.NaN()
		}
		return math.Log(*m.OthersWaitMS + 1)
	})
	by, low, _, ok := f.ratio(v, 0, alpha)
	if !ok || low <= 1 || by <= 1+t.Neighbours {
		return ""
	}
	was, is := math.Exp(f.mean[0])-1, math.Exp(f.mean[v])-1
	if is-was < leastWaitMS {
		return ""
	}
	return fmt.Sprintf("others wait longer for a CPU: %.3g instead of %.3g ms/s", is, was)
}

// unsteadyTurns says why most turns of a variant do not show how it goes on; "": they do.
func (t *Trial) unsteadyTurns(v int) string {
	n, why := 0, ""
	for _, m := range t.turns[v] {
		if m.Unsteady != "" {
			n, why = n+1, m.Unsteady
		}
	}
	if 2*n <= len(t.turns[v]) {
		return ""
	}
	return why
}

// lifts says that a variant lifts the median by more than the tail's gain is worth, where that is so at the benign ends of both
// intervals; level 0.5: of what was measured. "": it does not, or the user has an objective.
func (t *Trial) lifts(v int, level float64) string {
	f, h := t.fit(tail), t.fit(half)
	_, tail, _, ok := f.ratio(v, 0, level)
	by, median, _, has := h.ratio(v, 0, level)
	if t.promised || !ok || !has {
		return ""
	}
	was, wasTail := math.Exp(h.mean[0]), math.Exp(f.mean[0])
	if !verdict.MiddleLoses(was, was*median, wasTail, wasTail*tail) {
		return ""
	}
	return fmt.Sprintf("it lifts the middle: the median from %.3g to %.3g ms", was, was*by)
}

func (t *Trial) kinds() (n int) {
	for _, turns := range t.turns {
		for _, m := range turns {
			n = max(n, len(m.Others))
		}
	}
	return n
}

// told is the highest quantile up to the judged one that so many requests tell.
func (t *Trial) told(n int) (q float64, ok bool) {
	if n >= stats.Need(t.quantile) {
		return t.quantile, true
	}
	return stats.Tells(n, t.quantile)
}

// Row is what was measured of one variant.
type Row struct {
	// Measured is the judged quantile over all turns with its interval; nil: too few requests.
	Measured *verdict.Spread
	// P50Ms and P90Ms are nil where there are too few requests.
	P50Ms, P90Ms *float64
	Rounds       int
	Requests     int
	// Others are the requests of other kinds, as Measured.Others has them.
	Others []Other
	// Stopped and OthersWaitMS are the means of Measured's; nil: not measured.
	Stopped, OthersWaitMS *float64
	// Harm: the last turn was ended at once.
	Harm bool
	// Why says why it is not tried again, or cannot win; "": it was in the trial to the end.
	Why string
}

// Other is what was measured of another kind of requests: MS is the highest quantile up to the judged one that they tell. Both are 0
// where Requests tell none.
type Other struct {
	Requests     int
	Quantile, MS float64
}

// Row returns what was measured of a variant so far.
func (t *Trial) Row(v int) Row {
	requests := t.pooled(v)
	r := Row{Rounds: len(t.turns[v]), Requests: len(requests.TookMs), Why: t.out[v]}
	if n := len(t.turns[v]); n > 0 {
		r.Harm = t.turns[v][n-1].Ended != ""
	}
	if r.Why == "" {
		r.Why = t.harms(v)
	}
	r.Stopped = t.meanOf(v, func(m turn) *float64 { return m.Stopped })
	r.OthersWaitMS = t.meanOf(v, func(m turn) *float64 { return m.OthersWaitMS })
	for kind := range t.kinds() {
		took := slices.Sorted(slices.Values(t.pooledOther(v, kind).TookMs))
		other := Other{Requests: len(took)}
		if q, ok := t.told(len(took)); ok {
			other.Quantile, other.MS = q, stats.Rank(took, q)
		}
		r.Others = append(r.Others, other)
	}
	if s, ok := t.spread(v); ok {
		r.Measured = &s
		sorted := slices.Sorted(slices.Values(requests.TookMs))
		r.P50Ms, r.P90Ms = new(stats.Rank(sorted, 0.5)), new(stats.Rank(sorted, 0.9))
	}
	return r
}

// meanOf is the mean of a figure over the turns of a variant in which it was measured; nil: in none.
func (t *Trial) meanOf(v int, of func(turn) *float64) *float64 {
	var all []float64
	for _, m := range t.turns[v] {
		if is := of(m); is != nil {
			all = append(all, *is)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return new(mean(all))
}

// Cost is how many requests of the trial took longer than twice the promised quantile of leaving it, of how many.
func (t *Trial) Cost() (slow, all int) {
	was, ok := t.value(0)
	for v := range t.variants {
		for _, ms := range t.pooled(v).TookMs {
			if all++; ok && ms > 2*was {
				slow++
			}
		}
	}
	return slow, all
}

// Bound is from how long on a request is a harm: what leaving it has not shown by far. 0: nothing is known of leaving it yet.
func (t *Trial) Bound() time.Duration {
	longest := 0.0
	for _, m := range t.turns[0] {
		for _, ms := range m.Judged.TookMs {
			longest = max(longest, ms)
		}
		for _, other := range m.Others {
			for _, ms := range other.TookMs {
				longest = max(longest, ms)
			}
		}
	}
	return BoundOf(time.Duration(longest * float64(time.Millisecond)))
}

// A request that takes harmFactor times as long as the longest when it was left, and harmMore, is a harm: the longest of six seconds
// differs by a factor of two by itself.
const harmFactor, harmMore = 2, 200 * time.Millisecond

// BoundOf is from how long on a request is a harm, by the longest when the container was left; 0: that is not known.
func BoundOf(longest time.Duration) time.Duration {
	if longest <= 0 {
		return 0
	}
	return harmFactor*longest + harmMore
}

// LongestOf is of which longest request a bound was made.
func LongestOf(bound time.Duration) time.Duration { return max(0, bound-harmMore) / harmFactor }
