package trial

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// leastRounds is after how many rounds a variant may win.
	leastRounds = 2
	// sureRounds is from how many rounds on it counts that each round of one variant is below each round of another: of three chance
	// does that in 1 of 20 cases.
	sureRounds = 3
	// worseOnce is from which multiple of the best on a variant is not tried again after one round, muchWorse after more.
	worseOnce, muchWorse = 2.0, 1.5
	// mostContenders is how many remedies are tried further beside leaving it once each had leastRounds: the time goes
	// to those that may win.
	mostContenders = 2
	// leastOfRound is how many requests a round needs to count by itself.
	leastOfRound = 20
)

// Variant is one way to run the container.
type Variant struct {
	// Name is for people.
	Name string
	// Change orders variants by how much they change; leaving it has the least.
	Change int
	// Expected: the forecast would choose it. Then less evidence is needed to keep it, and more to prefer another one:
	// both alone are wrong for other
	// services.
	Expected bool
}

// Measured is what one turn of one variant showed.
type Measured struct {
	// Judged are the requests that are judged, or the runs of the judged pool; BeganMs is since the turn's start.
	Judged verdict.Requests
	// Others are the requests of other kinds, each kind at the same place in every turn.
	Others []verdict.Requests
	// Neighbours are the containers whose CPUs shrank, before and in this turn.
	Neighbours []verdict.Neighbour
	// Ended says why the turn was ended at once: the harm that it did; "": it was not.
	Ended string
	// Late is how long the request took that ended the turn; 0: none did.
	Late time.Duration
}

// Trial is a trial under way. It is not safe for concurrent use.
type Trial struct {
	variants []Variant
	quantile float64
	promised bool
	turns    [][]Measured // by variant
	out      []string     // why a variant is not tried again; "": it is
}

// New begins a trial. variants[0] is to leave it. quantile is judged, 0 to 1. promised: the user has an objective, above which no median
// stands.
func New(variants []Variant, quantile float64, promised bool) *Trial {
	return &Trial{variants: variants, quantile: quantile, promised: promised, turns: make([][]Measured, len(variants)),
		out: make([]string, len(variants))}
}

// contenders are the variants that are tried further: those that are not out, and of them leaving it and the lowest
// once each had its turns.
func (t *Trial) contenders() (all []int) {
	tried, ms := true, map[int]float64{}
	for v := range t.variants {
		if t.out[v] != "" {
			continue
		}
		all, tried = append(all, v), tried && len(t.turns[v]) >= leastRounds
		value, ok := t.value(v)
		if ms[v] = value; !ok || t.harms(v) != "" {
			ms[v] = math.Inf(1)
		}
	}
	if !tried || len(all) <= 1+mostContenders {
		return all
	}
	slices.SortStableFunc(all[1:], func(a, b int) int { // leaving it is the first, and never out
		switch {
		case t.variants[a].Expected:
			return -1
		case t.variants[b].Expected:
			return 1
		}
		return cmp.Compare(ms[a], ms[b])
	})
	return all[:1+mostContenders]
}

// Order is the order of the next round.
func (t *Trial) Order(draw *rand.Rand) []int {
	order := t.contenders()
	draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Left is how many variants the next round has.
func (t *Trial) Left() int { return len(t.contenders()) }

// Add takes in a turn. It tells whether the variant is out now, and why; "": it stays.
func (t *Trial) Add(variant int, m Measured) (out string) {
	t.turns[variant] = append(t.turns[variant], m)
	if m.Ended != "" && variant > 0 {
		t.out[variant] = m.Ended
		return m.Ended
	}
	t.drop()
	return t.out[variant]
}

// Readmit takes variants in again that a late request put out, where leaving it has shown since that requests take as
// long there: bound is from
// how long on one is a harm now. What was measured until it came does not count: it was cut off at a bad moment.
func (t *Trial) Readmit(bound time.Duration) {
	for v := range t.turns {
		n := len(t.turns[v])
		if n > 0 && t.turns[v][n-1].Late > 0 && t.turns[v][n-1].Late <= bound {
			t.turns[v], t.out[v] = t.turns[v][:n-1], ""
		}
	}
}

// Glance judges a short look at a variant that was not measured yet: where it is clearly worse the variant is out, and why. Else nothing
// is kept of it. A short look tells less: it must be twice as bad as what is not tried again after a turn.
func (t *Trial) Glance(variant int, m Measured) (out string) {
	if m.Ended != "" {
		return t.Add(variant, m)
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
	t.turns[variant] = append(t.turns[variant], m)
	t.out[variant] = "clearly worse after a short look"
	return t.out[variant]
}

// Out says why a variant is not tried again; "": it is.
func (t *Trial) Out(variant int) string { return t.out[variant] }

// Drop takes a variant out that cannot be tried.
func (t *Trial) Drop(variant int, why string) { t.out[variant] = why }

// drop takes out what is clearly worse than the best and beyond the noise of both, once each that is still in has had a turn.
func (t *Trial) drop() {
	q, ok := t.common()
	if !ok {
		return
	}
	best, high := math.Inf(1), math.Inf(1)
	for v := range t.variants {
		if t.out[v] == "" && len(t.turns[v]) == 0 {
			return
		}
		if s, ok := verdict.SpreadOf(t.pooled(v), q); ok && t.harms(v) == "" && s.Value < best {
			best, high = s.Value, s.High
		}
	}
	for v := 1; v < len(t.variants); v++ {
		s, ok := verdict.SpreadOf(t.pooled(v), q)
		if ok && t.out[v] == "" && s.Value >= worse(len(t.turns[v]))*best && s.Value-best >= stats.LeastGainMs && s.Low > high {
			t.out[v] = fmt.Sprintf("clearly worse after %s", text.Count(len(t.turns[v]), "round"))
		}
	}
}

// common is the highest quantile up to the judged one that the requests of each variant tell which is still in.
func (t *Trial) common() (float64, bool) {
	least := math.MaxInt
	for v := range t.variants {
		if t.out[v] == "" {
			least = min(least, len(t.pooled(v).TookMs))
		}
	}
	if least >= stats.Need(t.quantile) {
		return t.quantile, true
	}
	return stats.Tells(least, t.quantile)
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

// harms says what a variant harms beside what is judged, against leaving it; "": nothing.
func (t *Trial) harms(v int) string {
	if v == 0 {
		return ""
	}
	for _, m := range t.turns[v] {
		if _, harmed := verdict.Harmed(m.Neighbours); len(harmed) > 0 {
			return "containers whose CPUs shrank are stopped longer or use less: " + text.Names(harmed)
		}
	}
	was, is := t.pooled(0).TookMs, t.pooled(v).TookMs
	tail, ok := t.quantileOf(was)
	now, has := t.quantileOf(is)
	if !ok || !has {
		return ""
	}
	if wasMiddle, isMiddle := middle(was), middle(is); !t.promised && verdict.MiddleLoses(wasMiddle, isMiddle, tail, now) {
		return fmt.Sprintf("it lifts the middle: the median from %.3g to %.3g ms", wasMiddle, isMiddle)
	}
	for kind := range t.kinds() {
		was, is := t.pooledOther(0, kind).TookMs, t.pooledOther(v, kind).TookMs
		q, ok := stats.Tells(min(len(was), len(is)), objective.DefaultQuantile)
		if !ok {
			continue
		}
		before, after := stats.Rank(slices.Sorted(slices.Values(was)), q), stats.Rank(slices.Sorted(slices.Values(is)), q)
		if after >= stats.MuchHarm*before && after-before >= stats.LeastGainMs {
			return fmt.Sprintf("it harms other requests: from %.3g to %.3g ms", before, after)
		}
	}
	return ""
}

func (t *Trial) kinds() (n int) {
	for _, turns := range t.turns {
		for _, m := range turns {
			n = max(n, len(m.Others))
		}
	}
	return n
}

func middle(ms []float64) float64 { return stats.Rank(slices.Sorted(slices.Values(ms)), 0.5) }

// candidates are the variants that may win so far, and their latencies.
func (t *Trial) candidates() (all []int, ms map[int]float64) {
	ms = map[int]float64{}
	for v := range t.variants {
		value, ok := t.value(v)
		if !ok || t.harms(v) != "" || v > 0 && t.out[v] != "" {
			continue
		}
		all, ms[v] = append(all, v), value
	}
	return all, ms
}

// Leader is the variant that wins as far as can be told; false: nothing can be told of leaving it, or of any other.
func (t *Trial) Leader() (int, bool) {
	all, ms := t.candidates()
	if len(all) == 0 || all[0] != 0 {
		return 0, false
	}
	best := math.Inf(1)
	for _, v := range all {
		best = min(best, ms[v])
	}
	leader := -1
	for _, v := range all {
		if !stats.Alike(best, ms[v]) {
			continue
		}
		if leader < 0 || t.before(v, leader) {
			leader = v
		}
	}
	return leader, true
}

// before reports whether of two equal variants the first is to be preferred.
func (t *Trial) before(a, b int) bool {
	if ca, cb := t.variants[a].Change, t.variants[b].Change; ca != cb {
		return ca < cb
	}
	return t.unsteady(a) < t.unsteady(b)
}

// unsteady is how far the rounds of a variant differ, as a factor.
func (t *Trial) unsteady(v int) float64 {
	all := t.rounds(v)
	if len(all) == 0 {
		return math.Inf(1)
	}
	return slices.Max(all) / max(slices.Min(all), 1e-6)
}

// rounds are the judged quantiles of each turn with enough requests.
func (t *Trial) rounds(v int) (all []float64) {
	for _, m := range t.turns[v] {
		if ms, ok := t.quantileOf(m.Judged.TookMs); ok {
			all = append(all, ms)
		}
	}
	return all
}

// ahead reports whether a variant is better than another one beyond the noise.
func (t *Trial) ahead(a, b int) bool {
	was, is := t.rounds(b), t.rounds(a)
	if len(was) >= sureRounds && len(is) >= sureRounds && slices.Max(is) < slices.Min(was) {
		return true
	}
	j, _ := verdict.JudgeRequests(verdict.Evidence{}, t.quantile, t.pooled(b), t.pooled(a), true)
	return j.Verdict == verdict.Better
}

// Settled reports whether more rounds would tell nothing new: each variant that is still in had two, and the leader is ahead of all
// others or equal to them.
func (t *Trial) Settled() bool {
	leader, ok := t.Leader()
	if !ok {
		return false
	}
	all, ms := t.candidates()
	contenders := t.contenders()
	for _, v := range contenders {
		if len(t.turns[v]) < leastRounds {
			return false
		}
	}
	for _, v := range all {
		if v == leader || !slices.Contains(contenders, v) || stats.Alike(ms[leader], ms[v]) && stats.Alike(ms[v], ms[leader]) && v != 0 {
			continue
		}
		if v == 0 || leader != 0 {
			if !t.ahead(leader, v) {
				return false
			}
			continue
		}
		if t.gains(v) || t.mayGain(v) { // leaving it leads by a rule, or by chance, that the next round may turn
			return false
		}
	}
	return true
}

// mayGain reports whether a variant may be below leaving it by more than counts as equal, within its own noise.
func (t *Trial) mayGain(v int) bool {
	was, ok := t.value(0)
	s, has := t.spread(v)
	return ok && has && stats.Gains(was, s.Low)
}

// gains reports whether a variant is below leaving it by more than counts as equal.
func (t *Trial) gains(v int) bool {
	was, ok := t.value(0)
	is, has := t.value(v)
	return ok && has && stats.Gains(was, is)
}

// Choice is the variant to leave in force, and why in one sentence. 0: to leave it as it is.
func (t *Trial) Choice() (int, string) {
	leader, ok := t.Leader()
	for v, variant := range t.variants {
		if ok && variant.Expected && v != leader && t.out[v] == "" && t.harms(v) == "" && t.gains(v) && !t.beats(leader, v) {
			leader = v
		}
	}
	switch {
	case !ok:
		return 0, fmt.Sprintf("too few requests came within the trial to tell: %d while it was left as it is", len(t.pooled(0).TookMs))
	case leader == 0:
		return 0, "nothing that keeps the limit was better than leaving it by a tenth"
	case !t.gains(leader) || !t.variants[leader].Expected && !t.ahead(leader, 0) && !t.wins(leader, 0):
		return 0, fmt.Sprintf("%s came out lowest, and not beyond what rounds differ by themselves", t.variants[leader].Name)
	}
	lower, of := t.lower(leader, 0)
	was, before := t.words(0)
	is, after := t.words(leader)
	return leader, fmt.Sprintf("%s: measured %s%s and %s when left as it is%s, lower in %d of %s",
		t.variants[leader].Name, is, after, was, before, lower, text.Count(of, "round"))
}

// words are the judged quantile of a variant and its interval; "": so few requests tell none.
func (t *Trial) words(v int) (value, interval string) {
	ms, _ := t.value(v)
	if s, ok := t.spread(v); ok {
		ms, interval = s.Value, fmt.Sprintf(" (%.3g to %.3g)", s.Low, s.High)
	}
	return fmt.Sprintf("%.3g ms", ms), interval
}

// beats reports whether a variant is below another one by more than counts as equal, beyond the noise or in nearly each round.
func (t *Trial) beats(a, b int) bool {
	is, ok := t.value(a)
	was, has := t.value(b)
	return ok && has && !stats.Alike(is, was) && (t.ahead(a, b) || t.wins(a, b))
}

// lower is in how many rounds a variant was below another one in the same round, of how many.
func (t *Trial) lower(a, b int) (n, of int) {
	for i := range min(len(t.turns[a]), len(t.turns[b])) {
		was, ok := t.quantileOf(t.turns[b][i].Judged.TookMs)
		is, has := t.quantileOf(t.turns[a][i].Judged.TookMs)
		if !ok || !has {
			continue
		}
		if of++; is < was {
			n++
		}
	}
	return n, of
}

// wins reports whether a variant was below another one in nearly each round, all but one in four: once the budget is
// over, that is enough to
// prefer it, although one long stall may decide its quantile.
func (t *Trial) wins(a, b int) bool {
	n, of := t.lower(a, b)
	return of >= leastRounds && 4*n >= 3*of
}

// Row is what was measured of one variant.
type Row struct {
	// Measured is the judged quantile over all turns with its interval; nil: too few requests.
	Measured *verdict.Spread
	// P50Ms and P90Ms are nil where there are too few requests.
	P50Ms, P90Ms *float64
	Rounds       int
	Requests     int
	// Harm: the last turn was ended at once.
	Harm bool
	// Why says why it is not tried again, or cannot win; "": it was in the trial to the end.
	Why string
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
	if s, ok := t.spread(v); ok {
		r.Measured = &s
		sorted := slices.Sorted(slices.Values(requests.TookMs))
		r.P50Ms, r.P90Ms = new(stats.Rank(sorted, 0.5)), new(stats.Rank(sorted, 0.9))
	}
	return r
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
