package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Runs are the recorded runs of a thread pool: for each when it was woken since the recording's start, the time from then
// to its next sleep, and the CPU time in it, in ms.
type Runs struct {
	Window                     time.Duration
	WokenMs, ResponseMs, CPUMs []float64
}

const (
	// worthwhileRuns is the least relative difference of recorded runs that counts. Two recordings of the same work differ
	// by more than two answers of a user's own source, which looks at more of it.
	worthwhileRuns = stats.LeastGain
	// SameWork is by how much the CPU time per second may differ for responses to be compared as they are.
	SameWork = 0.2
)

// JudgeRuns compares a pool's responses before and after, as Judge does a user's latencies; e has the neighbours.
// Where there are too few runs for the quantile a lower one is judged. Where the work that came, as CPU time per
// second, differs by more than a fifth, each run is judged by its response as a multiple of its own CPU time: a run
// of less work answers sooner by itself.
//
// Runs that waited in one backlog depend on each other: one long stop makes many long responses. So runs are compared in
// blocks, one for each backlog. A quantile is larger where fewer than 25 of 1000 assignments of the blocks to before and
// after differ as much in that direction, and the longest is by Rosenbaum's test on the longest of each block, at the
// same level. Work that is alike on both sides is then judged worse in at most 5 of 100 cases.
//
// Three tests say better, each at a third of the chance: these two, and that of the longest response of each backlog as a
// multiple of the backlog's CPU time, as a geometric mean. That one counts only where the tail fell too. It finds
// what few backlogs of different size hide from a quantile: of a modelled service at 0.6 CPUs with 20 s on each side, a
// burst is better in 28 of 40 cases instead of 6.
func JudgeRuns(e Evidence, quantile float64, before, after Runs) Judgement {
	enough := func(q float64) bool {
		return len(before.ResponseMs) >= stats.Need(q) && len(after.ResponseMs) >= stats.Need(q)
	}
	if !enough(quantile) {
		if lower, ok := stats.Tells(min(len(before.ResponseMs), len(after.ResponseMs)), quantile); ok {
			quantile = lower
		}
	}
	e.Quantile = quantile
	if len(before.ResponseMs) == 0 || len(after.ResponseMs) == 0 {
		e.Before, e.After = nil, nil
		j := judge(e, compared{unit: "ms"})
		j.Why = fmt.Sprintf("%d runs were recorded before and %d after, so the effect on tails is not known",
			len(before.ResponseMs), len(after.ResponseMs))
		return j
	}
	longest := longestBlockMs(before, after)
	by, was, is := compared{least: worthwhileRuns, unit: "ms"}, before.work(), after.work()
	perCPU := false
	if !(was > 0 && is >= was*(1-SameWork) && is <= was*(1+SameWork)) {
		perCPU, by.unit = true, "times its CPU time"
	}
	by.before, by.after = new(before.blocks(perCPU, longest)), new(after.blocks(perCPU, longest))
	e.Before, e.After = by.before.values, by.after.values
	j := judge(e, by)
	if j.PerCPU = perCPU; perCPU {
		j.Why += fmt.Sprintf("; judged by run, because %.3g CPUs of work came before and %.3g after", was, is)
	}
	return j
}

// longestBlockMs is how long a block of a backlog without an end may be. It goes by the 99th percentile of the
// responses: a single run that waits through
// the whole recording, as a burner's does, is no backlog of the others.
func longestBlockMs(before, after Runs) float64 {
	window := min(before.Window, after.Window)
	most := min(leastBlockMs, float64(window.Milliseconds())/leastBlocks)
	for _, r := range []Runs{before, after} {
		most = max(most, blockResponses*stats.Rank(slices.Sorted(slices.Values(r.ResponseMs)), 0.99))
	}
	return most
}

// Backlogs is in how many blocks JudgeRuns compares runs, where the other side is alike.
func (r Runs) Backlogs() int {
	if len(r.ResponseMs) == 0 {
		return 0
	}
	return r.blocks(false, longestBlockMs(r, r)).count
}

// work is the CPU time per second.
func (r Runs) work() float64 {
	sum := 0.0
	for _, ms := range r.CPUMs {
		sum += ms
	}
	return sum / float64(r.Window.Milliseconds())
}

// blocks are the runs' responses, grouped by backlog. perCPU: they are multiples of the runs' own CPU time, and runs without
// any are left out.
func (r Runs) blocks(perCPU bool, longestMs float64) blocks {
	var runs []run
	for i, ms := range r.ResponseMs {
		one := run{woken: r.WokenMs[i], wait: ms - r.CPUMs[i], value: ms, response: ms, cpu: r.CPUMs[i]}
		if perCPU {
			if r.CPUMs[i] == 0 {
				continue
			}
			one.value /= r.CPUMs[i]
		}
		runs = append(runs, one)
	}
	return blocksOf(runs, endlessShare*float64(r.Window.Milliseconds()), longestMs)
}
