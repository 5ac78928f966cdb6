package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Figures are what came of one remedy.
type Figures struct {
	ThrottledPeriods float64
	Stopped          time.Duration
	// Delay and Response of all pools together, over all seeds, and of each.
	Delay, Response Quantiles
	Pools           []PoolFigures
	// Widest is the most CPUs at once, in any run.
	Widest int
	CPU    time.Duration // used
	// Unfinished is CPU time that was still to come at the end of what should have been done.
	Unfinished time.Duration
}

// PoolFigures are those of one pool.
type PoolFigures struct {
	Name, Process   string
	Delay, Response Quantiles
}

// Quantiles of a distribution of times, in milliseconds; nil: nothing was counted.
type Quantiles struct {
	Count              uint64
	P50, P90, P99, Max *float64
}

func quantilesOf(t *simulate.Times) Quantiles {
	return Quantiles{Count: t.Count(), P50: t.Quantile(0.5), P90: t.Quantile(0.9), P99: t.Quantile(0.99), Max: t.Max()}
}

// Neighbours are what others lose by a remedy, or gain, against leaving it.
type Neighbours struct {
	// Lost is CPU time that they do not get within the recording's time; below 0: they get more.
	Lost time.Duration
	// P99 of their responses in milliseconds, and without the remedy; nil: there are none.
	P99, Before *float64
}

// Trial is one run: a remedy, a host load (0: as recorded), a seed.
type Trial struct {
	Remedy   Remedy
	HostLoad float64
	Load     float64 // factor of arrivals
	Seed     uint64
}

// Result of a Trial.
type Result struct {
	Refused error // the remedy cannot be in force
	// Figures of the run by itself.
	ThrottledPeriods uint64
	Stopped          time.Duration
	CPU              time.Duration
	Widest           int
	Times            []simulate.ReplayTimes // by pool of the load
	Others           simulate.ReplayTimes
	Unfinished       time.Duration
	Demand           time.Duration // of the container, that came in the time
	Events           uint64
}

// Run makes a trial. Errors are those of the simulator, none for a remedy that cannot be: see Result.Refused.
func (l *Load) Run(t Trial) (Result, error) {
	s, err := l.scenario(t.Remedy)
	if err != nil {
		return Result{Refused: err}, nil
	}
	replay := l.Replay
	if t.Remedy.Name != None || t.HostLoad > 0 || t.Load != 1 {
		// Writing a limit lets its periods begin anew, and another load or time is not the recorded one anyway.
		replay.Phase = nil
	}
	pools, of := l.Pools, l.own
	if t.Remedy.Modelled() {
		s, replay, pools, err = l.modelled(t.Remedy, s, replay)
		if err != nil {
			return Result{Refused: err}, nil
		}
	}
	if t.Load != 1 {
		l.faster(&s, &replay, of, t.Load)
	}
	if t.HostLoad > 0 {
		l.fill(&s, &replay, t.HostLoad)
	}
	l.outlast(&s)
	r, err := simulate.RunReplay(s, &replay, simulate.Options{Seed: t.Seed})
	if err != nil {
		return Result{}, err
	}
	return l.result(s.Cgroups[l.Container].Name, s.Cgroups[l.Binding].Name, pools, r), nil
}

// result picks the container's figures, and those of its neighbours, out of a run.
func (l *Load) result(container, binding string, pools []*Pool, r simulate.ReplayResult) Result {
	own := r.Outcome.Cgroups[container]
	out := Result{
		ThrottledPeriods: r.Outcome.Cgroups[binding].ThrottledPeriods, Stopped: seconds(*own.StoppedSeconds),
		CPU: l.paid(seconds(own.UsageSeconds)), Others: newTimes(), Events: r.Events,
	}
	for _, w := range own.Width {
		out.Widest = max(out.Widest, w.CPUs)
	}
	for _, p := range pools {
		times := newTimes()
		for _, w := range p.Workloads {
			merge(&times, &r.Times[w])
		}
		out.Unfinished += times.Unfinished
		out.Times = append(out.Times, times)
	}
	for _, w := range l.others {
		merge(&out.Others, &r.Times[w])
	}
	out.Unfinished = l.paid(out.Unfinished)
	out.Demand = out.CPU + out.Unfinished
	return out
}

func merge(into, from *simulate.ReplayTimes) {
	into.Delay.Merge(from.Delay)
	into.Response.Merge(from.Response)
	into.Unfinished += from.Unfinished
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Objective is what latency must keep.
type Objective struct {
	Quantile float64 // 0 to 1; 1: the longest
	Bound    time.Duration
	Pool     string // by name; "": all together
}

// of is the objective's own figure in milliseconds, of a distribution of responses; nil: there were none.
func (o Objective) of(t *simulate.Times) *float64 {
	if o.Quantile >= 1 {
		return t.Max()
	}
	return t.Quantile(o.Quantile)
}

// summed are the times of all pools that an objective looks at, over some runs.
func (l *Load) summed(results []Result, pool string) simulate.ReplayTimes {
	all := newTimes()
	for i := range results {
		for p := range results[i].Times {
			if pool == "" || p < len(l.Pools) && l.Pools[p].Name == pool {
				merge(&all, &results[i].Times[p])
			}
		}
	}
	return all
}

// figures sums up the runs of one remedy with several seeds: medians, and latencies over all.
func (l *Load) figures(results []Result) Figures {
	f := Figures{
		ThrottledPeriods: median(results, func(r *Result) float64 { return float64(r.ThrottledPeriods) }),
		Stopped:          time.Duration(median(results, func(r *Result) float64 { return float64(r.Stopped) })),
		CPU:              time.Duration(median(results, func(r *Result) float64 { return float64(r.CPU) })),
		Unfinished:       time.Duration(median(results, func(r *Result) float64 { return float64(r.Unfinished) })),
	}
	for i := range results {
		f.Widest = max(f.Widest, results[i].Widest)
	}
	all := l.summed(results, "")
	f.Delay, f.Response = quantilesOf(all.Delay), quantilesOf(all.Response)
	for p, pool := range l.Pools {
		times := newTimes()
		for i := range results {
			if p < len(results[i].Times) {
				merge(&times, &results[i].Times[p])
			}
		}
		f.Pools = append(f.Pools, PoolFigures{pool.Name, pool.Process, quantilesOf(times.Delay), quantilesOf(times.Response)})
	}
	return f
}

// median is the middle of a figure over seeds, of an even number the lower of the two.
func median(results []Result, figure func(*Result) float64) float64 {
	var all []float64
	for i := range results {
		all = append(all, figure(&results[i]))
	}
	slices.Sort(all)
	return stats.Rank(all, 0.5)
}

// spread is the least and the greatest of a figure over seeds.
func spread(results []Result, figure func(*Result) *float64) *Range {
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
