//go:build accuracy

package forecast

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// heldOutRemedies are the remedies that the test applies for real: all that this kernel can do by itself.
var heldOutRemedies = []Remedy{
	{Name: None}, {Name: Pin, CPUs: 1}, {Name: Burst}, {Name: Period, Period: 20 * time.Millisecond}, {Name: Weight},
	{Name: Raise, Factor: 1.5},
}

// applied returns the remedy as a scenario has it, for a cgroup with that limit.
func (r Remedy) applied(l bandwidth.Limit) *scenario.Remedy {
	switch r.Name {
	case Pin:
		return &scenario.Remedy{Kind: scenario.Pin, CPUs: r.CPUs}
	case Burst:
		return &scenario.Remedy{Kind: scenario.Burst, Burst: l.Quota}
	case Period:
		return &scenario.Remedy{Kind: scenario.Period, Period: r.Period}
	case Weight:
		return &scenario.Remedy{Kind: scenario.Weight}
	case Raise:
		return &scenario.Remedy{Kind: scenario.Raise, Factor: r.Factor}
	}
	return nil
}

// drawnWorkload returns a random workload, and the pool whose latency counts.
func drawnWorkload(seed uint64) (text, pool string) {
	r := rand.New(rand.NewPCG(seed, 0x666f726563617374))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	limit := between(0.35, 1.1)
	work := limit * between(0.35, 0.75) // CPUs wanted
	head := fmt.Sprintf("version: 1\nduration: %v\nhost: {cpus: 2}\ncgroups: {app: {quota: %.1fms}}\nworkloads:\n",
		heldOutRunTime, limit*100)
	switch r.IntN(4) {
	case 0:
		threads, run := 2+r.IntN(7), between(3, 15)
		sleep := run * (float64(threads)/work - 1)
		return head + fmt.Sprintf("  pool: {kind: sleep-run, cgroup: app, threads: %d, run: {exponential: %.2fms}, "+
			"sleep: {exponential: %.2fms}}\n", threads, run, sleep), "pool-*"
	case 1:
		ms, burst := between(1, 4), 1+r.IntN(16)
		return head + fmt.Sprintf("  web:\n    kind: service\n    cgroup: app\n    pools: {http: {threads: %d}}\n    classes:\n"+
			"      get: {pool: http, work: {exponential: %.2fms}, arrivals: {per_second: %.1f, burst: %d}}\n",
			2+r.IntN(7), ms, work*1000/ms, burst), "http-*"
	case 2:
		ms, gc := between(1, 3), between(30, 90)
		rate := max(20, (work-gc/600)*1000/ms)
		return head + fmt.Sprintf("  web:\n    kind: service\n    cgroup: app\n    pools: {http: {threads: 4}}\n    classes:\n"+
			"      get: {pool: http, work: {exponential: %.2fms}, arrivals: {per_second: %.1f}}\n"+
			"  gc: {kind: gc, cgroup: app, of: web, threads: %d, work: %.0fms, every: 600ms}\n", ms, rate, 2+r.IntN(3), gc), "http-*"
	}
	return head + fmt.Sprintf("  burners: {kind: burn, cgroup: app, threads: %d}\n  sleeper: {kind: sleeper, cgroup: app, sleep: %.0fms}\n",
		2+r.IntN(5), between(5, 15)), "sleeper-*"
}

// basePeriod is the period of all draws, so that shares of periods compare.
const basePeriod = 100 * time.Millisecond

// figuresOf returns the figures of a recording, or false if the pool did too little.
func figuresOf(l *Load, pool string) (f heldOutFigures, ok bool) {
	for _, p := range l.Pools {
		if r := p.recorded.Response; p.Name == pool && r.Count() >= 20 {
			f.P50, f.P99, f.Max, ok = *r.Quantile(0.5), *r.Quantile(0.99), *r.Max(), true
			f.Sampled = sampled(r, 0.99, float64(r.Count()))
		}
	}
	if n := l.recorded.throttledPeriods; n != nil {
		f.Throttled = float64(*n) / (l.window.Seconds() / basePeriod.Seconds())
	}
	if d := l.recorded.stopped; d != nil {
		f.Stopped = d.Seconds() / l.window.Seconds()
	}
	return f, ok
}

// predicted sets the forecast of a remedy. It returns false if there is none.
func (row *heldOutRow) predicted(l *Load, f *Forecast, r Remedy, pool string) bool {
	for i := range f.Rows {
		of := &f.Rows[i]
		if of.HostLoad != 0 || of.Refused != "" || of.Remedy.Name != r.Name || of.Remedy.Factor != r.Factor ||
			of.Remedy.Period != r.Period ||
			r.Name == Pin && of.Remedy.CPUs != r.CPUs || of.Error == nil || of.Error.P99 == nil {
			continue
		}
		for _, p := range of.Figures.Pools {
			if p.Name == pool && p.Response.P99 != nil {
				periods := l.window.Seconds() / basePeriod.Seconds()
				row.Predicted = heldOutFigures{
					P50: *p.Response.P50, P99: *p.Response.P99, Max: *p.Response.Max,
					Throttled: of.Figures.ThrottledPeriods / periods, Stopped: of.Figures.Stopped.Seconds() / l.window.Seconds(),
				}
				share := func(r *Range, of float64) *Range { return &Range{r.Low / of, r.High / of} }
				row.Own = *of.Error
				row.Own.ThrottledPeriods, row.Own.Stopped = share(row.Own.ThrottledPeriods, periods),
					share(row.Own.Stopped, l.window.Seconds())
				return true
			}
		}
	}
	return false
}
