package demo

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// counters is one reading of all counters.
type counters struct {
	at   time.Duration // CLOCK_MONOTONIC
	stat cgroup.Stat
	host map[int]procfs.Times // nil: not readable
}

// window is one variant as it was measured.
type window struct {
	quota      bool
	begin, end counters
	records    []workload.Record // whose start lies in the window
	held       bool
}

// figures fills in all of a variant that follows from its window, except the
// histogram, whose bins depend on the other variants.
func (w window) figures(a Variant) Variant {
	seconds := (w.end.at - w.begin.at).Seconds()
	a.Window = round3(seconds)
	before, after := w.begin.stat, w.end.stat
	if before.Bandwidth && after.Bandwidth {
		a.Periods = ptr(after.Periods - before.Periods)
		if w.quota {
			a.ThrottledPeriods = ptr(after.ThrottledPeriods - before.ThrottledPeriods)
			a.ThrottledSeconds = ptr(round3((after.Throttled - before.Throttled).Seconds()))
		}
	}
	if before.Usage != nil && after.Usage != nil {
		used := (*after.Usage - *before.Usage).Seconds()
		a.CPUSeconds, a.UsedCPUs = ptr(round3(used)), ptr(round3(used/seconds))
		if all, stolen, ok := spent(w.begin.host, w.end.host); ok {
			a.OtherCPUs = ptr(round3(max(0, all-used) / seconds))
			a.StolenCPUs = ptr(round3(stolen / seconds))
		}
	}
	a.WorkPerSecond = workRate(w.records)
	a.Held = w.held
	a.sleeps(w.took())
	return a
}

// sleeps fills in what the sleeps took, sorted.
func (a *Variant) sleeps(took []time.Duration) {
	a.Sleeps = len(took)
	if len(took) == 0 {
		return
	}
	a.P50 = ptr(millis(stats.Rank(took, 0.50)))
	a.P99 = ptr(millis(stats.Rank(took, 0.99)))
	a.Max = ptr(millis(took[len(took)-1]))
	late := time.Duration(0)
	for _, t := range took {
		late += t - sleepLength
	}
	a.Late = ptr(round3(late.Seconds()))
}

// took gives what the sleeps took, sorted.
func (w window) took() []time.Duration {
	took := make([]time.Duration, len(w.records))
	for i, r := range w.records {
		took[i] = r.Took
	}
	slices.Sort(took)
	return took
}

// workRate is the burners' rounds per second between the ends of the first and
// last sleep.
func workRate(records []workload.Record) *float64 {
	if len(records) < 2 {
		return nil
	}
	first, last := records[0], records[len(records)-1]
	span := (last.End() - first.End()).Seconds()
	if span <= 0 || last.Work < first.Work {
		return nil
	}
	return ptr(float64(last.Work-first.Work) / span)
}

// fillHistograms gives all variants histograms over the same bins.
func fillHistograms(variants []*Variant, windows []window, sleep time.Duration) {
	most := sleep
	for _, w := range windows {
		for _, r := range w.records {
			most = max(most, r.Took)
		}
	}
	shared := edges(sleep, most)
	for i, w := range windows {
		variants[i].Histogram = histogram(shared, w.took())
	}
}

func ptr[T any](v T) *T { return &v }

// round3 keeps three decimals: further ones would be noise.
func round3(f float64) float64 {
	if f < 0 {
		return -round3(-f)
	}
	return float64(int64(f*1000+0.5)) / 1000
}
