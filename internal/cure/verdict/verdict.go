package verdict

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Verdicts.
const (
	Better     = "better"
	Worse      = "worse"
	NoChange   = "no change"
	Unverified = "unverified"
)

// Evidence is what a verdict rests on.
type Evidence struct {
	// Quantile of the user's latency that is judged, 0 to 1; 1 is the longest.
	Quantile float64
	// Before and After are the user's latencies in ms; nil: there is no source.
	Before, After []float64
	// BeforeAt and AfterAt say of each of them when the request began, in ms since one moment; nil: not known.
	BeforeAt, AfterAt []float64
	// First is what the source gave at once after the change, where it was asked twice; nil: it was not.
	First []float64
	// Neighbours are the containers whose CPUs shrank.
	Neighbours []Neighbour
}

// Neighbour is a container whose CPUs shrank, before and after. Nil: not
// measured.
type Neighbour struct {
	Name          string
	Before, After hoststate.Observed
	// Lends: its own CPUs are lent to the target, so that it is watched for CPU
	// time it no longer gets.
	Lends bool
}

// Judgement is a verdict and what it rests on.
type Judgement struct {
	Verdict string `json:"verdict"`
	// Why is one sentence with the figures.
	Why string `json:"why"`
	// Before and After are the judged quantile with its spread; nil: not
	// measured, too few samples, or a harmed neighbour decided.
	Before *Spread `json:"before"`
	After  *Spread `json:"after"`
	// Quantile is the one that Before and After have, 0 to 1.
	Quantile float64 `json:"quantile"`
	// PerCPU: Before and After are multiples of a run's own CPU time and no milliseconds, because the amount of
	// work differs. See JudgeRuns.
	PerCPU bool `json:"per_cpu"`
	// OtherWork: more or fewer requests came after than before, so that the difference says nothing. See JudgeRequests.
	OtherWork bool `json:"other_work"`
	// Neighbours says of each neighbour what was seen of it. Harmed are those
	// that are stopped longer than before, also where the verdict is
	// "unverified".
	Neighbours []string `json:"neighbours"`
	Harmed     []string `json:"harmed"`
}

// Spread is a quantile of samples, in ms, with the interval that holds the true
// one in 95 of 100 cases, and the longest sample.
type Spread struct {
	Value   float64 `json:"value_ms"`
	Low     float64 `json:"low_ms"`
	High    float64 `json:"high_ms"`
	Longest float64 `json:"longest_ms"`
	Samples int     `json:"samples"`
}

const (
	// worthwhile is the least relative difference that counts: less may be
	// real, and is nothing a user notices.
	worthwhile = 0.05
	// chance is how rarely a difference may come about by itself.
	chance = 0.05
	// worseStopped is by how much of each second a neighbour must be stopped
	// longer than before to be worse off.
	worseStopped = 0.01
	// worseUse is the part of its CPU use that an owner of lent CPUs must lose
	// to count as harmed, of at least leastUse CPUs: what it does varies by
	// itself, and taking CPUs back from a secondary is the safe side.
	worseUse, leastUse = 0.1, 0.05
)

// Judge compares before and after. Without the user's latencies the verdict is
// always "unverified": run-queue wait and counters do not show tails, and
// what they say is better may be worse for users. Otherwise two things decide, and the worse of
// them counts: the quantile, different where the two 95 % intervals do not
// meet and the values differ by 5 %; and the longest, different where so many
// samples of one side lie beyond the longest of the other that chance would do
// it in fewer than 5 of 100 cases. A neighbour that is now stopped longer makes
// it worse whatever the samples say. An answer of the source that is not of the
// time after the change leaves the effect unverified. Samples that depend on each other (requests
// that queued behind the same stall) make the intervals narrower than they are, unless it is known when each request
// began: then they are compared in blocks, as JudgeRuns does.
func Judge(e Evidence) Judgement {
	by := compared{least: worthwhile, unit: "ms", asked: true}
	if len(e.BeforeAt) == 0 || len(e.AfterAt) == 0 {
		return judge(e, by)
	}
	before, after := requests(e.Before, e.BeforeAt), requests(e.After, e.AfterAt)
	longest := longestBlockMs(before, after)
	by.asked = false // the times say what is from after the change
	by.before, by.after = new(before.blocks(false, longest)), new(after.blocks(false, longest))
	return judge(e, by)
}

// requests are latencies with their times as runs that wait from their beginning to their end: what a request computes
// itself is not known.
func requests(ms, at []float64) Runs {
	first, last := slices.Min(at), slices.Max(at)
	return Runs{Window: time.Duration((last - first) * float64(time.Millisecond)), WokenMs: at, ResponseMs: ms,
		CPUMs: make([]float64, len(ms))}
}

// compared says how samples are compared.
type compared struct {
	// least is the relative difference from which on a quantile has moved.
	least float64
	unit  string
	// asked: a source was asked for the samples, which may answer for a time before the change.
	asked bool
	// before and after are the samples in blocks; nil: no sample depends on another.
	before, after *blocks
}

// grounds are what a decision rests on.
type grounds uint8

const (
	byComparison grounds = iota
	byNeighbours         // one is harmed
	byNoSource           // nothing was given for the time before
	byNoAnswer           // and nothing for the time after
	byFewBefore
	byFewAfter
	byStaleAnswer // the answer is not of the time after the change
	byLookedBack  // the answer is also of the time before
)

// decision is a verdict with what it rests on.
type decision struct {
	verdict string
	grounds
	before, after *Spread // nil: not known
	// faster: a backlog of the same work takes factor of the time.
	factor float64
	faster bool
}

// decide compares samples.
func decide(e Evidence, by compared, harmed bool) decision {
	d := decision{verdict: Unverified, grounds: byNoSource}
	switch {
	case len(e.Before) == 0:
		return d
	case len(e.After) == 0:
		d.grounds = byNoAnswer
		return d
	case harmed:
		d.verdict, d.grounds = Worse, byNeighbours
		return d
	}
	before, ok := by.spread(by.before, e.Before, e.Quantile)
	if !ok {
		d.grounds = byFewBefore
		return d
	}
	after, ok := by.spread(by.after, e.After, e.Quantile)
	if d.before = &before; !ok {
		d.grounds = byFewAfter
		return d
	}
	if d.after = &after; by.asked && e.notFresh() != "" {
		d.grounds = byStaleAnswer
		return d
	}
	quantile, longest := by.differences(e, before, after)
	if e.Quantile >= 1 {
		// The longest is the quantile: its interval has no upper end.
		quantile = 0
	}
	d.grounds = byComparison
	d.factor, d.faster = by.faster(e.Quantile)
	switch {
	case quantile > 0 || longest > 0:
		d.verdict = Worse
	case quantile < 0 || longest < 0 || d.faster:
		d.verdict = Better
	case by.asked && e.looksBack() != "":
		d.verdict, d.grounds = Unverified, byLookedBack
	default:
		d.verdict = NoChange
	}
	return d
}

// judge decides, and says why.
func judge(e Evidence, by compared) Judgement {
	j := Judgement{Quantile: e.Quantile}
	j.Neighbours, j.Harmed = Harmed(e.Neighbours)
	d := decide(e, by, len(j.Harmed) > 0)
	j.Verdict, j.Before, j.After, j.Why = d.verdict, d.before, d.after, d.why(e, by.unit, j.Harmed)
	return j
}

// Harmed says of each neighbour what was seen of it, and names those that are stopped longer than before, or use less of what they lend.
func Harmed(neighbours []Neighbour) (seen, harmed []string) {
	seen, harmed = []string{}, []string{}
	for _, n := range neighbours {
		seen = append(seen, n.String())
		if n.harmed() {
			harmed = append(harmed, n.Name)
		}
	}
	return seen, harmed
}

const (
	// middlePrice is the share of what the tail gains that the median may lose, in ms; [stats.LeastGainMs] it may lose
	// anyway. Remedies that press a tail together lift the middle: with exclusive CPUs p50 rises a little and p99 halves.
	middlePrice = 0.25
)

// MiddleLoses reports whether the median loses more than the gain of the tail is worth. All are in ms. Choices by a forecast
// and verdicts have this rule in common; an objective of the user's own stands above it.
//
// Worked example: p99 falls from 58 to 17 ms, so that the median may rise by 10 ms.
func MiddleLoses(wasP50, isP50, was, is float64) bool {
	return isP50-wasP50 > max(stats.LeastGainMs, middlePrice*(was-is))
}

// moved is 1 where a quantile became larger, -1 smaller, 0 the same.
func moved(before, after Spread, least float64) int {
	if math.Abs(after.Value-before.Value) < least*before.Value {
		return 0
	}
	switch {
	case after.Low > before.High:
		return 1
	case after.High < before.Low:
		return -1
	}
	return 0
}

// spread is the quantile of one side.
func (by compared) spread(in *blocks, values []float64, q float64) (Spread, bool) {
	if in == nil {
		return Quantile(values, q)
	}
	return in.spread(q)
}

// differences say of the quantile and of the longest whether they became larger (1), smaller (-1) or neither (0).
func (by compared) differences(e Evidence, before, after Spread) (quantile, longest int) {
	if by.before == nil {
		return moved(before, after, by.least), tails(e.Before, e.After, by.least, levels{chance, chance})
	}
	if e.Quantile < 1 {
		quantile = movedByBlocks(*by.before, *by.after, e.Quantile, by.least, ofBlocks)
	}
	return quantile, tails(by.before.longest(), by.after.longest(), by.least, ofBlocks)
}

// ofBlocks are the levels of each rule for blocks: two rules say worse, and three better.
var ofBlocks = levels{worse: chance / 2, better: chance / 3}

// faster says by which factor a backlog of the same work became faster, and whether that shows that it is better.
func (by compared) faster(q float64) (factor float64, is bool) {
	if by.before == nil {
		return 1, false
	}
	return fasterByBlocks(*by.before, *by.after, q, by.least, ofBlocks.better)
}

// tails is 1 where the longest became longer, -1 shorter, 0 the same, by
// Rosenbaum's test: if both sides were alike, the largest samples of all would be on one side
// as rarely as where that many are drawn of all. Those that are longer by less than least do not count.
func tails(before, after []float64, least float64, at levels) int {
	beyond := func(a, b []float64, level float64) bool {
		longest, n := slices.Max(b)*(1+least), 0
		for _, x := range a {
			if x > longest {
				n++
			}
		}
		p := 1.0
		for i := range n {
			p *= float64(len(a)-i) / float64(len(a)+len(b)-i)
		}
		return p < level
	}
	switch {
	case beyond(after, before, at.worse):
		return 1
	case beyond(before, after, at.better):
		return -1
	}
	return 0
}

// Quantile is a quantile of samples, with the distribution-free interval of its
// order statistics (binomial, normal approximation). ok is false where there
// are too few samples: fewer than 5 beyond the quantile expected, or, for the
// longest, fewer than 5 at all. samples stay as they are.
func Quantile(samples []float64, q float64) (s Spread, ok bool) {
	n := len(samples)
	if n < stats.Need(q) || q <= 0 || math.IsNaN(q) {
		return Spread{}, false
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	at := func(rank float64) float64 { return sorted[min(max(int(math.Ceil(rank)), 1), n)-1] }
	rank, half := q*float64(n), 1.96*math.Sqrt(float64(n)*q*max(0, 1-q))
	return Spread{Value: at(rank), Low: at(rank - half), High: at(rank + half + 1), Longest: sorted[n-1], Samples: n}, true
}

// harmed tells whether it is surely stopped longer: the least it can be now
// against the most it was; of an owner of lent CPUs also whether it uses less.
func (n Neighbour) harmed() bool {
	before, after := n.Before.StoppedHigh, n.After.StoppedLow
	if was, now := n.Before.UsedCPUs, n.After.UsedCPUs; n.Lends && was != nil && now != nil && *was-*now > max(worseUse**was, leastUse) {
		return true
	}
	return before != nil && after != nil && *after > *before+worseStopped
}
