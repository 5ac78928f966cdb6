package scenario

import (
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Quantile sums up runs of one scenario. Each figure by itself is the nearest-rank quantile p (0 to 1) over the
// runs: see [stats.Rank]. Runs without a figure do not count for it. runs must not be
// empty.
func Quantile(runs []Outcome, p float64) Outcome {
	o := Outcome{Seconds: runs[0].Seconds, Cgroups: map[string]CgroupOutcome{}, Workloads: map[string]WorkloadOutcome{}}
	for name := range runs[0].Cgroups {
		of := over(runs, p, func(r Outcome) CgroupOutcome { return r.Cgroups[name] })
		o.Cgroups[name] = CgroupOutcome{
			Periods:          pick(of, func(c CgroupOutcome) uint64 { return c.Periods }),
			ActivePeriods:    pickMeasured(of, func(c CgroupOutcome) *uint64 { return c.ActivePeriods }),
			ThrottledPeriods: pick(of, func(c CgroupOutcome) uint64 { return c.ThrottledPeriods }),
			ThrottledSeconds: pick(of, func(c CgroupOutcome) float64 { return c.ThrottledSeconds }),
			UsageSeconds:     pick(of, func(c CgroupOutcome) float64 { return c.UsageSeconds }),
			StoppedSeconds:   pickMeasured(of, func(c CgroupOutcome) *float64 { return c.StoppedSeconds }),
			Width:            widths(of),
		}
	}
	for name := range runs[0].Workloads {
		of := over(runs, p, func(r Outcome) WorkloadOutcome { return r.Workloads[name] })
		o.Workloads[name] = WorkloadOutcome{
			Latencies:   latencies(of, func(w WorkloadOutcome) Latencies { return w.Latencies }),
			Refused:     pick(of, func(w WorkloadOutcome) uint64 { return w.Refused }),
			Unfinished:  pick(of, func(w WorkloadOutcome) uint64 { return w.Unfinished }),
			CPUSeconds:  pickMeasured(of, func(w WorkloadOutcome) *float64 { return w.CPUSeconds }),
			Iterations:  pickMeasured(of, func(w WorkloadOutcome) *uint64 { return w.Iterations }),
			Failed:      pickMeasured(of, func(w WorkloadOutcome) *uint64 { return w.Failed }),
			MarkedDead:  pickMeasured(of, func(w WorkloadOutcome) *uint64 { return w.MarkedDead }),
			DeadSeconds: pickMeasured(of, func(w WorkloadOutcome) *float64 { return w.DeadSeconds }),
			// A run that never recovered counts as the longest.
			RecoverySeconds: pickRecovery(of),
			Classes:         classes(of),
		}
	}
	return o
}

// sample is one part of all runs, and the share to ask for.
type sample[T any] struct {
	runs []T
	p    float64
}

func over[T any](runs []Outcome, p float64, part func(Outcome) T) sample[T] {
	s := sample[T]{p: p}
	for _, r := range runs {
		s.runs = append(s.runs, part(r))
	}
	return s
}

func pick[T any, N uint64 | float64](s sample[T], figure func(T) N) N {
	var all []N
	for _, r := range s.runs {
		all = append(all, figure(r))
	}
	slices.Sort(all)
	return stats.Rank(all, s.p)
}

func pickMeasured[T any, N uint64 | float64](s sample[T], figure func(T) *N) *N {
	measured := sample[T]{p: s.p}
	for _, r := range s.runs {
		if figure(r) != nil {
			measured.runs = append(measured.runs, r)
		}
	}
	if len(measured.runs) == 0 {
		return nil
	}
	v := pick(measured, func(r T) N { return *figure(r) })
	return &v
}

// pickRecovery counts a run that never recovered as the longest.
func pickRecovery(s sample[WorkloadOutcome]) *float64 {
	v := pick(s, func(w WorkloadOutcome) float64 {
		if w.RecoverySeconds == nil {
			return math.Inf(1)
		}
		return *w.RecoverySeconds
	})
	if math.IsInf(v, 1) {
		return nil
	}
	return &v
}

// classes picks for each class of the first run.
func classes(s sample[WorkloadOutcome]) map[string]Latencies {
	if s.runs[0].Classes == nil {
		return nil
	}
	out := map[string]Latencies{}
	for name := range s.runs[0].Classes {
		out[name] = latencies(s, func(w WorkloadOutcome) Latencies { return w.Classes[name] })
	}
	return out
}

// latencies picks each quantile by itself.
func latencies[T any](s sample[T], value func(T) Latencies) Latencies {
	return Latencies{
		Count: pick(s, func(r T) uint64 { return value(r).Count }),
		P50:   pickMeasured(s, func(r T) *float64 { return value(r).P50 }),
		P90:   pickMeasured(s, func(r T) *float64 { return value(r).P90 }),
		P95:   pickMeasured(s, func(r T) *float64 { return value(r).P95 }),
		P99:   pickMeasured(s, func(r T) *float64 { return value(r).P99 }),
		Max:   pickMeasured(s, func(r T) *float64 { return value(r).Max }),
	}
}

// widths picks for each number of CPUs that was in use in any run.
func widths(s sample[CgroupOutcome]) []Width {
	most := -1
	for _, r := range s.runs {
		if n := len(r.Width); n > 0 {
			most = max(most, r.Width[n-1].CPUs)
		}
	}
	if most < 0 {
		return nil
	}
	out := []Width{}
	for cpus := range most + 1 {
		seconds := pick(s, func(c CgroupOutcome) float64 {
			if i := slices.IndexFunc(c.Width, func(w Width) bool { return w.CPUs == cpus }); i >= 0 {
				return c.Width[i].Seconds
			}
			return 0
		})
		if seconds > 0 {
			out = append(out, Width{CPUs: cpus, Seconds: seconds})
		}
	}
	return out
}
