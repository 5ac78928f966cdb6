package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// What a forecast says of the library, its row "budget", is tested here: the bursts are simulated as that row replays a recording,
// and compared with the real runs. forecast reads the error from budget.json, beside its calibration.

// foretold are the figures of a simulated run.
type foretold struct{ throttledShare, pingP50, pingP99, workP50, workP99 float64 }

// pingCPU is the CPU time of a ping: what the real service used beyond its works, over its pings.
const pingCPU = 150 * time.Microsecond

// phases is from how many phases of the period bursts are simulated.
const phases = 10

// simulated runs bursts under a limit in the simulator, with work held back or not, from several phases of the period.
func simulated(s step, held bool) (foretold, error) {
	const d = 14 * time.Second // of which the first 4 are counted too: nothing has to be learnt but the cost of works
	text := fmt.Sprintf("version: 1\nduration: %v\nhost: {cpus: 2, hz: 250, kernel: \"6.18\"}\ncgroups: {app: "+
		"{quota: %dus, period: 100ms}}\n"+
		"workloads: {pings: {kind: burn, cgroup: app}, works: {kind: burn, cgroup: app, threads: %d}}\n", d, int(s.limit*100_000), s.works)
	of, err := scenario.Parse("bursts", []byte(text))
	if err != nil {
		return foretold{}, err
	}
	for i := range of.Workloads {
		of.Workloads[i].Kind = simulate.Replayed
	}
	steps := func(every, cpu time.Duration) (replaySteps []simulate.ReplayStep) {
		for at := every; at < d; at += every {
			replaySteps = append(replaySteps, simulate.ReplayStep{Kind: simulate.StepUntil, For: at},
				simulate.ReplayStep{Kind: simulate.StepRun, For: cpu})
		}
		return append(replaySteps, simulate.ReplayStep{Kind: simulate.StepEnd})
	}
	replay := simulate.Replay{Threads: []simulate.ReplayThread{{Steps: steps(5*time.Millisecond, pingCPU)}}}
	for range s.works {
		replay.Threads = append(replay.Threads, simulate.ReplayThread{Steps: steps(250*time.Millisecond, 20*time.Millisecond)})
	}
	if held {
		replay.Gate = &simulate.Gate{Workloads: []int{0, 1}, Permits: int(math.Ceil(s.limit)), Paced: true, Least: time.Millisecond}
	}
	var throttled, periods uint64
	pings, works := simulate.NewTimes(), simulate.NewTimes()
	for seed := range phases {
		r, err := simulate.RunReplay(of, &replay, simulate.Options{Seed: uint64(seed)})
		if err != nil {
			return foretold{}, err
		}
		throttled, periods = throttled+r.Outcome.Cgroups["app"].ThrottledPeriods, periods+r.Outcome.Cgroups["app"].Periods
		pings.Merge(r.Times[0].Response)
		works.Merge(r.Times[1].Response)
	}
	return foretold{100 * float64(throttled) / float64(max(1, periods)), *pings.Quantile(0.5), *pings.Quantile(0.99),
		*works.Quantile(0.5), *works.Quantile(0.99)}, nil
}

// residual is the error of the row: as forecast.Residual, whose JSON it is.
type residual struct {
	N                int     `json:"n"`
	P50              float64 `json:"p50"`
	P99              float64 `json:"p99"`
	Max              float64 `json:"max"`
	ThrottledPeriods float64 `json:"throttled_periods"`
	Stopped          float64 `json:"stopped"`
}

// pingFloor is the latency of a ping, in ms, below which the way to the client and the host's other work are most of it: the
// simulator has neither. What is below counts as that on both sides.
const pingFloor = 5.0

// covered is the share of real runs that lie within the error: forecast.Coverage.
const covered = 0.9

// errorOfBudget compares the real runs of the Go library with the simulated ones. Longest latencies and stopped time are not in
// the records: their errors are those of p99 and of throttled periods.
func errorOfBudget(pieces []piece) (residual, error) {
	var p50, p99, throttled []float64
	ratio := func(real, told float64) float64 { return math.Abs(math.Log(real / told)) }
	ping := func(real, told float64) float64 { return ratio(max(pingFloor, real), max(pingFloor, told)) }
	for _, s := range plan {
		if s.part != partBursts && s.part != partOverload {
			continue
		}
		told, err := simulated(s, true)
		if err != nil {
			return residual{}, err
		}
		for _, p := range pieces {
			if p.Part == s.part && p.Limit == s.limit && p.Variant == paced && p.WorksDone > 0 && p.WorkP50MS > 0 {
				p50 = append(p50, max(ping(p.PingP50MS, told.pingP50), ratio(p.WorkP50MS, told.workP50)))
				p99 = append(p99, max(ping(p.PingP99MS, told.pingP99), ratio(p.WorkP99MS, told.workP99)))
				throttled = append(throttled, math.Abs(throttledShare(p)-told.throttledShare)/100)
			}
		}
	}
	if len(p99) == 0 {
		return residual{}, nil
	}
	most := func(v []float64) float64 {
		slices.Sort(v)
		return math.Round(1e4*stats.Rank(v, covered)) / 1e4
	}
	r := residual{N: len(p99), P50: most(p50), P99: most(p99), ThrottledPeriods: most(throttled)}
	r.Max, r.Stopped = r.P99, r.ThrottledPeriods
	return r, nil
}

// budgetJSON is internal/sim/forecast/budget.json.
func budgetJSON(pieces []piece) ([]byte, error) {
	r, err := errorOfBudget(pieces)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}
