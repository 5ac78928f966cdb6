package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Figures are the predicted figures of one remedy.
type Figures struct {
	ThrottledPeriods float64
	Stopped          time.Duration
	// Delay and Response have all pools together, over all seeds; Pools has each pool.
	Delay, Response Quantiles
	Pools           []PoolFigures
	// Widest is the most CPUs at once, in any run.
	Widest int
	CPU    time.Duration // used
	// Unfinished is the CPU time that was still to do at the end.
	Unfinished time.Duration
}

// PoolFigures are the figures of one pool.
type PoolFigures struct {
	Name, Process   string
	Delay, Response Quantiles
}

// Quantiles of a distribution of times, in milliseconds; nil: the distribution is empty.
type Quantiles struct {
	Count uint64   `json:"count"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P99   *float64 `json:"p99_ms"`
	Max   *float64 `json:"max_ms"`
}

func quantilesOf(t *simulate.Times) Quantiles {
	return Quantiles{Count: t.Count(), P50: t.Quantile(0.5), P90: t.Quantile(0.9), P99: t.Quantile(objective.P99), Max: t.Max()}
}

// Neighbours is the effect of a remedy on other containers, compared with none.
type Neighbours struct {
	// Lost is the CPU time that they lose within the recording's time. Below 0 they gain.
	Lost time.Duration
	// P99 is the p99 of their responses in milliseconds, Before the same without the remedy; nil: there are
	// none.
	P99, Before *float64
}

// trial is one run: a remedy, a host load (0: as recorded), a seed.
type trial struct {
	remedy   Remedy
	hostLoad float64
	load     float64 // factor of arrivals
	seed     uint64
	anyPhase bool // periods begin at any moment, and not as recorded
}

// result is the result of a trial.
type result struct {
	done    bool  // the trial was run
	refused error // why the remedy cannot be in force
	// The figures of this run, of that length.
	length           time.Duration
	throttledPeriods uint64
	stopped          time.Duration
	cpu              time.Duration
	widest           int
	times            []simulate.ReplayTimes // by pool of the load
	others           simulate.ReplayTimes
	unfinished       time.Duration
	demand           time.Duration // of the container, that came within the time
	events           uint64
	// requests are how long each request took, by index in Load.requests; nil: the row's threads are modelled, or its
	// arrivals are not the recorded ones.
	requests []time.Duration
	// slowest are the slowest responses by pool of the load; nil: its arrivals are not the recorded ones.
	slowest []slowest
}

// run makes a trial. It returns the errors of the simulator. A remedy that cannot be in force is no error:
// see result.refused.
func (l *Load) run(t trial) (result, error) {
	s, err := l.scenarioWith(t.remedy)
	if err != nil {
		return result{refused: err}, nil
	}
	replay := l.replay
	if !t.remedy.keepsPeriods() || t.hostLoad > 0 || t.load != 1 || t.anyPhase {
		replay.Phase = nil // another period begins anew, and another load or time is not the recorded one
	}
	pools, of := l.Pools, l.own
	if t.remedy.Modelled() {
		s, replay, pools, err = l.withQueues(t.remedy, s, replay)
		if err != nil {
			return result{refused: err}, nil
		}
	}
	if t.remedy.Name == Budget {
		replay.Gate = l.gate(t.remedy)
	}
	if t.load != 1 {
		replay.Requests = nil
		l.scaleArrivals(&s, &replay, of, t.load)
	}
	if t.hostLoad > 0 {
		l.fillHost(&s, &replay, t.hostLoad)
	}
	l.stretchQuotas(&s)
	replay.Phase, replay.Holds = l.begins(&s, replay.Phase, t)
	o, slowestOf := simulate.Options{Seed: t.seed}, func() []slowest { return nil }
	if t.load == 1 {
		o.Responses, slowestOf = l.slowestBy()
	}
	r, err := simulate.RunReplay(s, &replay, o)
	if err != nil {
		return result{}, err
	}
	out := l.result(s.Cgroups[l.container].Name, s.Cgroups[l.binding].Name, pools, r)
	out.slowest, out.length = slowestOf(), s.Duration
	return out, nil
}

// result extracts the figures of the container and of its neighbours from a run.
func (l *Load) result(container, binding string, pools []*Pool, r simulate.ReplayResult) result {
	own := r.Outcome.Cgroups[container]
	out := result{
		throttledPeriods: r.Outcome.Cgroups[binding].ThrottledPeriods, stopped: seconds(*own.StoppedSeconds),
		cpu: l.chargedFor(seconds(own.UsageSeconds)), others: newTimes(), events: r.Events, requests: r.Requests,
	}
	for _, w := range own.Width {
		out.widest = max(out.widest, w.CPUs)
	}
	for _, p := range pools {
		times := newTimes()
		for _, w := range p.workloads {
			merge(&times, &r.Times[w])
		}
		out.unfinished += times.Unfinished
		out.times = append(out.times, times)
	}
	for _, w := range l.others {
		merge(&out.others, &r.Times[w])
	}
	out.unfinished = l.chargedFor(out.unfinished)
	out.demand = out.cpu + out.unfinished
	return out
}

func merge(into, from *simulate.ReplayTimes) {
	into.Delay.Merge(from.Delay)
	into.Response.Merge(from.Response)
	into.Unfinished += from.Unfinished
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Objective is the latency to keep.
type Objective struct {
	objective.Objective
	Pool string // name; "": all pools together
}

// quantile returns the objective's quantile of a distribution in milliseconds, or nil if it is empty.
func (o Objective) quantile(t *simulate.Times) *float64 {
	if o.Quantile >= 1 {
		return t.Max()
	}
	return t.Quantile(o.Quantile)
}

// mergedTimes merges the times of the pools of that name, or of all for "", over several runs.
func (l *Load) mergedTimes(results []result, pool string) simulate.ReplayTimes {
	replayTimes := newTimes()
	for i := range results {
		for p := range results[i].times {
			if pool == "" || p < len(l.Pools) && l.Pools[p].Name == pool {
				merge(&replayTimes, &results[i].times[p])
			}
		}
	}
	return replayTimes
}

// figures sums up the runs of one remedy with several seeds: medians of counters, and latencies over all
// runs.
func (l *Load) figures(results []result) Figures {
	f := Figures{
		ThrottledPeriods: median(results, func(r *result) float64 { return float64(r.throttledPeriods) }),
		Stopped:          time.Duration(median(results, func(r *result) float64 { return float64(r.stopped) })),
		CPU:              time.Duration(median(results, func(r *result) float64 { return float64(r.cpu) })),
		Unfinished:       time.Duration(median(results, func(r *result) float64 { return float64(r.unfinished) })),
	}
	for i := range results {
		f.Widest = max(f.Widest, results[i].widest)
	}
	replayTimes := l.mergedTimes(results, "")
	f.Delay, f.Response = quantilesOf(replayTimes.Delay), quantilesOf(replayTimes.Response)
	for p, pool := range l.Pools {
		times := newTimes()
		for i := range results {
			if p < len(results[i].times) {
				merge(&times, &results[i].times[p])
			}
		}
		f.Pools = append(f.Pools, PoolFigures{pool.Name, pool.process, quantilesOf(times.Delay), quantilesOf(times.Response)})
	}
	return f
}

// median is the lower median of a figure over results.
func median(results []result, figure func(*result) float64) float64 {
	var all []float64
	for i := range results {
		all = append(all, figure(&results[i]))
	}
	slices.Sort(all)
	return stats.Rank(all, 0.5)
}

// spread returns the least and the greatest value of a figure over seeds.
func spread(results []result, figure func(*result) *float64) *Range {
	var r *Range
	for i := range results {
		v := figure(&results[i])
		switch {
		case v == nil:
		case r == nil:
			r = &Range{*v, *v}
		default:
			r.Low, r.High = math.Min(r.Low, *v), math.Max(r.High, *v)
		}
	}
	return r
}
