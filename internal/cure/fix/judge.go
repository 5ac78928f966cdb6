package fix

import (
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// Try is one remedy that was applied, and what came of it.
type Try struct {
	Remedy     string            `json:"remedy"`
	Parameters map[string]string `json:"parameters"`
	// Expected is the forecast; null: there is none.
	Expected *txn.Expected `json:"expected"`
	Before   *txn.Figures  `json:"before"`
	After    *txn.Figures  `json:"after"`
	Verdict  string        `json:"verdict"`
	Why      string        `json:"why"`
	// ObjectiveMet: null where there is no objective or nothing was measured.
	ObjectiveMet *bool `json:"objective_met"`
	Kept         bool  `json:"kept"`
	// Pools are the container's thread pools before and after; empty: they were not recorded.
	Pools []Pool `json:"pools"`
}

// judgement compares by the user's own latencies, else by what was recorded of what the forecast judged;
// with Options.Both by both, and the worse verdict counts. more: a longer recording would tell.
func (r *run) judgement(e verdict.Evidence, again Learned) (j verdict.Judgement, more bool) {
	recorded := r.runs != nil && again.Runs != nil && r.known.Forecast != nil
	if r.env.Latencies == nil {
		if !recorded {
			return verdict.Judge(e), false
		}
		return r.byRecording(e, again)
	}
	e.Quantile = r.o.Objective.Quantile
	j = verdict.Judge(e)
	r.latencyFigures(j)
	var runs verdict.Judgement
	if recorded {
		runs, more = r.byRecording(verdict.Evidence{}, again) // without Both its figures alone count, for the journal
	}
	switch {
	case !r.o.Both:
		return j, false
	case !recorded:
		j.Verdict, j.Why = verdict.Unverified, "the responses were not recorded, and both were to judge; "+j.Why
		return j, false
	}
	j.Why += "; recorded: " + runs.Why
	if worse := []string{verdict.Worse, verdict.NoChange, verdict.Unverified, verdict.Better}; slices.Index(worse,
		runs.Verdict) < slices.Index(worse, j.Verdict) {
		j.Verdict = runs.Verdict
	}
	return j, more
}

// byRecording compares the recorded requests, or the recorded runs of the pool, that the forecast judged.
func (r *run) byRecording(e verdict.Evidence, again Learned) (j verdict.Judgement, more bool) {
	judged := r.judged()
	lost := max(r.runs.Lost, again.Runs.Lost)
	if judged.Of == forecast.OfRequests {
		before, after := requestsOf(r.runs, judged.Kind), requestsOf(again.Runs, judged.Kind)
		j, more = verdict.JudgeRequests(e, judged.Quantile, before, after, r.o.Objective != (objective.Objective{}))
		if judged.Quantile == objective.P99 && lost <= mostLost {
			r.eachSide(j, func(to *txn.Figures, from verdict.Spread) { to.RequestsP99Ms = new(from.Value) })
		}
	} else {
		before, after := runsOf(r.runs, judged.Pool), runsOf(again.Runs, judged.Pool)
		j = verdict.JudgeRuns(e, judged.Quantile, before, after)
		if judged.Quantile == objective.P99 && !j.PerCPU && lost <= mostLost { // of other work the p99 says nothing about the forecast
			poolP99(r.res.Before, before)
			poolP99(r.res.After, after)
		}
	}
	if lost > mostLost { // what it says of neighbours stays
		j.Verdict, j.Before, j.After = verdict.Unverified, nil, nil
		j.Why = fmt.Sprintf("a recording lost %.2g events for each one that it has, so that its latencies mean nothing", lost)
		return j, false
	}
	r.pools = poolsOf(judged, r.runs, again.Runs)
	return j, more
}

func requestsOf(runs *forecast.Runs, k forecast.Kind) verdict.Requests {
	requests := verdict.Requests{Window: runs.Window, CPUs: runs.CPU().Seconds() / runs.Window.Seconds()}
	for _, q := range runs.Requests(k) {
		requests.BeganMs, requests.TookMs = append(requests.BeganMs, ms(q.Began)), append(requests.TookMs, ms(q.Took))
	}
	return requests
}

// mostLost is how many events a recording may lose, for each one that it has, and still be judged by.
const mostLost = 0.01

// leastOfPool is how many runs a p99 needs to be kept beside its forecast, which is of as many: one lies beyond it.
const leastOfPool = 100

// poolP99 notes the p99 of recorded runs.
func poolP99(to *txn.Figures, runs verdict.Runs) {
	if to != nil && len(runs.ResponseMs) >= leastOfPool {
		to.PoolP99Ms = new(stats.Rank(slices.Sorted(slices.Values(runs.ResponseMs)), objective.P99))
	}
}

// judgedByRuns: recorded runs judge, beside the user's own latencies or without them.
func (r *run) judgedByRuns() bool { return r.env.Latencies == nil || r.o.Both }

// judged is whose runs are judged, by which quantile.
func (r *run) judged() forecast.Judged {
	if r.by != nil {
		return r.by.Judged
	}
	if f := r.made(); f != nil && f.Judged != nil {
		return *f.Judged
	}
	return forecast.Judged{Of: forecast.OfPool, Quantile: objective.DefaultQuantile}
}

// made is the forecast; nil: there is none.
func (r *run) made() *forecast.Forecast {
	if r.known == nil {
		return nil
	}
	return r.known.Forecast
}

// eachSide visits the figures before and after with what was judged on that side, where both are there.
func (r *run) eachSide(j verdict.Judgement, visit func(to *txn.Figures, from verdict.Spread)) {
	if r.res.Before != nil && j.Before != nil {
		visit(r.res.Before, *j.Before)
	}
	if r.res.After != nil && j.After != nil {
		visit(r.res.After, *j.After)
	}
}

func runsOf(of *forecast.Runs, pool string) verdict.Runs {
	runs := verdict.Runs{Window: of.Window}
	for _, run := range of.Of(pool) {
		runs.WokenMs = append(runs.WokenMs, ms(run.Woken))
		runs.ResponseMs = append(runs.ResponseMs, ms(run.Response))
		runs.CPUMs = append(runs.CPUMs, ms(run.CPU))
	}
	return runs
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// objectiveMet: nil where there is no objective, or no quantile of it was measured.
func (r *run) objectiveMet(j verdict.Judgement) *bool {
	if r.o.Objective == (objective.Objective{}) || j.After == nil || j.Verdict == verdict.Unverified || j.PerCPU ||
		j.Quantile != r.o.Objective.Quantile {
		return nil
	}
	return new(r.o.Objective.Met(j.After.Value))
}

// latencyFigures puts the quantiles beside the counters' figures, where they
// have a place there.
func (r *run) latencyFigures(j verdict.Judgement) { r.eachSide(j, r.latencyFigure) }

func (r *run) latencyFigure(to *txn.Figures, from verdict.Spread) {
	to.MaxMs = new(from.Longest)
	switch r.o.Objective.Quantile {
	case 0.5:
		to.P50Ms = new(from.Value)
	case objective.P99:
		to.P99Ms = new(from.Value)
	}
}

// tried notes what came of the remedy. It tells whether the remedy was undone because it did not help, and the
// forecast may know a better one.
func (r *run) tried() bool {
	j := r.res.Judgement
	t := Try{Remedy: r.res.Remedy, Parameters: r.plan.Shown(), Expected: r.plan.Expected, Before: r.res.Before, After: r.res.After,
		Verdict: r.res.Verdict, Why: r.res.Why, ObjectiveMet: r.res.ObjectiveMet, Kept: r.res.Kept, Pools: r.pools}
	if j != nil {
		t.Why = j.Why
	}
	if before := r.res.Before; before != nil {
		copied := *before
		t.Before = &copied
	}
	r.res.Tries = append(r.res.Tries, t)
	choice := r.res.Proposal.Choice
	if choice == nil || r.res.Kept || j == nil || j.Verdict == verdict.Unverified && len(j.Harmed) == 0 {
		return false
	}
	r.known.Tried[choice.Row] = "tried: " + j.Verdict
	return true
}
