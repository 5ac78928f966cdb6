package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Requests are recorded requests: when each began, since the recording's start, and how long it took, in ms.
type Requests struct {
	Window          time.Duration
	BeganMs, TookMs []float64
	// CPUs is the CPU time of the container per second.
	CPUs float64
}

// perSecond is how many requests came in a second.
func (r Requests) perSecond() float64 { return float64(len(r.TookMs)) / r.Window.Seconds() }

// Stalls is how many backlogs made the tail: those whose longest request took half of the quantile or more. Requests of one
// stall are one event, so that few stalls tell little, however many requests waited in them.
func (r Requests) Stalls(quantile float64) int {
	if len(r.TookMs) == 0 {
		return 0
	}
	runs := requests(r.TookMs, r.BeganMs)
	least := stats.Rank(slices.Sorted(slices.Values(r.TookMs)), quantile) / 2
	n := 0
	for _, longest := range runs.blocks(false, longestBlockMs(runs, runs)).longest() {
		if longest >= least {
			n++
		}
	}
	return n
}

// unsure is the relative difference from which on "no change" is said only after a longer look: it may be real, and too few
// stalls came to show it.
const unsure = 0.2

// JudgeRequests compares recorded requests before and after by the quantile that was promised, and by no other: where a side
// has too few the verdict is "unverified", and More says that a longer look would tell. e has the neighbours.
//
// Requests that queued behind one stop depend on each other, so they are compared in blocks, as JudgeRuns does. Without an
// objective (promised) the median may not lose more than the tail's gain is worth (MiddleLoses). Less work answers sooner by itself: a
// gain with a fifth fewer requests is unverified, and so is a loss with a fifth more.
//
// Worked example: a JVM stops for its collector twice a second. In 9 s p99 falls from 253 ms (201 to 280) to 111 ms (77 to
// 119). The 18 requests beyond each p99 are of 4 stalls, which chance could put on one side: a longer look tells.
func JudgeRequests(e Evidence, quantile float64, before, after Requests, promised bool) (j Judgement, more bool) {
	e.Quantile, e.Before, e.After = quantile, before.TookMs, after.TookMs
	if need := stats.Need(quantile); len(before.TookMs) < need || len(after.TookMs) < need {
		e.Before, e.After = nil, nil
		j = judge(e, compared{unit: "ms"})
		j.Why = fmt.Sprintf("%d requests before and %d after are too few to tell %s: %d are needed", len(before.TookMs),
			len(after.TookMs), objective.InWords(quantile), need)
		return j, true
	}
	runs, other := requests(before.TookMs, before.BeganMs), requests(after.TookMs, after.BeganMs)
	longest := longestBlockMs(runs, other)
	by := compared{least: worthwhileRuns, unit: "ms", before: new(runs.blocks(false, longest)), after: new(other.blocks(false, longest))}
	j = judge(e, by)
	if len(j.Harmed) > 0 {
		return j, false
	}
	was, is := median(before.TookMs), median(after.TookMs)
	j.Why += fmt.Sprintf("; median from %.4g ms to %.4g ms; %.3g requests a second before and %.3g after, %.3g and %.3g CPUs",
		was, is, before.perSecond(), after.perSecond(), before.CPUs, after.CPUs)
	if !promised && j.Verdict == Better && MiddleLoses(was, is, j.Before.Value, j.After.Value) {
		j.Verdict, j.Why = Worse, j.Why+"; the middle loses more than the tail gains"
	}
	fewer, many := after.perSecond() < (1-SameWork)*before.perSecond(), after.perSecond() > (1+SameWork)*before.perSecond()
	if fewer && j.Verdict == Better || many && (j.Verdict == Worse || j.Verdict == NoChange) {
		j.Verdict, j.OtherWork, j.Why = Unverified, true, "other work came than before: "+j.Why
		return j, true
	}
	return j, j.Verdict == NoChange && math.Abs(j.After.Value-j.Before.Value) >= unsure*j.Before.Value
}

// SpreadOf is a quantile of requests with its interval, by blocks of those that wait for each other; false: there are too few.
func SpreadOf(r Requests, quantile float64) (Spread, bool) {
	if len(r.TookMs) == 0 {
		return Spread{}, false
	}
	runs := requests(r.TookMs, r.BeganMs)
	return runs.blocks(false, longestBlockMs(runs, runs)).spread(quantile)
}

func median(ms []float64) float64 { return stats.Rank(slices.Sorted(slices.Values(ms)), 0.5) }
