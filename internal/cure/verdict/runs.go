package verdict

import (
	"fmt"
	"time"
)

// Runs are the recorded runs of a thread pool: for each the time from its wake-up to its next sleep and the CPU
// time in it, in ms.
type Runs struct {
	Window            time.Duration
	ResponseMs, CPUMs []float64
}

const (
	// worthwhileRuns is the least relative difference of recorded runs that counts. Runs that waited for the same
	// stop depend on each other, so that more is asked of them than of a user's own latencies.
	worthwhileRuns = 0.1
	// sameWork is by how much the CPU time per second may differ for responses to be compared as they are.
	sameWork = 0.2
)

// quantilesOfRuns are the quantiles that runs may be judged by, the first that both sides have enough runs for.
var quantilesOfRuns = []float64{0.99, 0.95, 0.9, 0.5}

// JudgeRuns compares a pool's responses before and after, as Judge does a user's latencies; e has the neighbours.
// Where there are too few runs for the quantile a lower one is judged. Where the work that came, as CPU time per
// second, differs by more than a fifth, each run is judged by its response as a multiple of its own CPU time: a run
// of less work answers sooner by itself.
func JudgeRuns(e Evidence, quantile float64, before, after Runs) Judgement {
	enough := func(q float64) bool { return len(before.ResponseMs) >= need(q) && len(after.ResponseMs) >= need(q) }
	if !enough(quantile) {
		for _, q := range quantilesOfRuns {
			if q < quantile && enough(q) {
				quantile = q
				break
			}
		}
	}
	e.Quantile = quantile
	if len(before.ResponseMs) == 0 || len(after.ResponseMs) == 0 {
		e.Before, e.After = nil, nil
		j := judge(e, worthwhileRuns, "ms", false)
		j.Why = fmt.Sprintf("%d runs were recorded before and %d after, so the effect on tails is not known", len(before.ResponseMs), len(after.ResponseMs))
		return j
	}
	was, is := before.work(), after.work()
	if was > 0 && is >= was*(1-sameWork) && is <= was*(1+sameWork) {
		e.Before, e.After = before.ResponseMs, after.ResponseMs
		return judge(e, worthwhileRuns, "ms", false)
	}
	e.Before, e.After = before.perCPU(), after.perCPU()
	j := judge(e, worthwhileRuns, "times its CPU time", false)
	j.PerCPU = true
	j.Why += fmt.Sprintf("; judged by run, because %.3g CPUs of work came before and %.3g after", was, is)
	return j
}

// work is the CPU time per second.
func (r Runs) work() float64 {
	sum := 0.0
	for _, ms := range r.CPUMs {
		sum += ms
	}
	return sum / float64(r.Window.Milliseconds())
}

// perCPU are the responses as multiples of the runs' own CPU time. Runs without any are left out.
func (r Runs) perCPU() []float64 {
	var all []float64
	for i, ms := range r.CPUMs {
		if ms > 0 {
			all = append(all, r.ResponseMs[i]/ms)
		}
	}
	return all
}
