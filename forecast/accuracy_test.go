//go:build accuracy

package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/cgroup/cgrouptest"
	"github.com/unthrottle/unthrottle/lab/kept"
	"github.com/unthrottle/unthrottle/lab/require"
	"github.com/unthrottle/unthrottle/scenario"
)

// Where results are kept, so that a run that was interrupted goes on, and what is written of them.
const (
	accuracyFile    = "../.cache/accuracy-forecast.jsonl"
	accuracyPage    = "../docs/accuracy-forecast.md"
	calibrationFile = "calibration.json"
)

// accuracyRun is how long each real run lasts.
const accuracyRun = "8s"

// drawn is a random workload on 2 CPUs, and the pool whose latency is looked at.
func drawn(seed uint64) (text, pool string) {
	r := rand.New(rand.NewPCG(seed, 0x666f726563617374))
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	limit := between(0.35, 1.1)
	work := limit * between(0.35, 0.75) // CPUs wanted
	head := fmt.Sprintf("version: 1\nduration: %s\nhost: {cpus: 2}\ncgroups: {app: {quota: %.1fms}}\nworkloads:\n", accuracyRun, limit*100)
	switch r.IntN(4) {
	case 0:
		threads, run := 2+r.IntN(7), between(3, 15)
		sleep := run * (float64(threads)/work - 1)
		return head + fmt.Sprintf("  pool: {kind: sleep-run, cgroup: app, threads: %d, run: {exponential: %.2fms}, sleep: {exponential: %.2fms}}\n", threads, run, sleep), "pool-*"
	case 1:
		ms, burst := between(1, 4), 1+r.IntN(16)
		return head + fmt.Sprintf("  web:\n    kind: service\n    cgroup: app\n    pools: {http: {threads: %d}}\n    classes:\n"+
			"      get: {pool: http, work: {exponential: %.2fms}, arrivals: {per_second: %.1f, burst: %d}}\n", 2+r.IntN(7), ms, work*1000/ms, burst), "http-*"
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

// accuracyRemedies are applied for real: all that this kernel can do by itself.
var accuracyRemedies = []Remedy{
	{Name: None}, {Name: Pin, CPUs: 1}, {Name: Burst}, {Name: Period, Period: 20 * time.Millisecond}, {Name: Weight}, {Name: Raise, Factor: 1.5},
}

// accuracyResult is one workload.
type accuracyResult struct {
	Seed     uint64
	Pool     string
	Again    float64 // p99 of a second run as it was: what the kernel agrees with itself
	Remedies []accuracyRow
}

// accuracyRow is one remedy, foretold and for real. Times in milliseconds, shares of the periods and of the time.
type accuracyRow struct {
	Name                 string
	P50, P99, Max        [2]float64 // foretold, real
	Low, High            float64    // of the foretold p99
	Throttled, Stopped   [2]float64
	ThrottledLow, ThHigh float64
}

// TestAccuracy forecasts random workloads, then applies each remedy for real: make accuracy-forecast. UNTHROTTLE_DRAWS
// says how many; 20.
func TestAccuracy(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	require.CPUs(t, 2)
	draws := kept.Number(t, "UNTHROTTLE_DRAWS", 20)
	known := map[uint64]accuracyResult{}
	for _, r := range kept.Read[accuracyResult](t, accuracyFile) {
		known[r.Seed] = r
	}
	tree := cgrouptest.New(t)
	tree.Make("inner")
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for seed := range uint64(draws) {
		if _, done := known[seed]; done {
			continue
		}
		if interrupted.Err() != nil {
			break // between two draws, so that nothing is left behind
		}
		r, ok := accuracyOf(t, tree, seed)
		if !ok {
			continue
		}
		known[seed] = r
		kept.Append(t, accuracyFile, r)
		fmt.Fprintf(os.Stderr, "%d of %d: %+v\n", seed+1, draws, r)
	}
	text, calibration := accuracyMarkdown(slices.SortedFunc(maps.Values(known), func(a, b accuracyResult) int { return int(a.Seed) - int(b.Seed) }))
	if err := os.WriteFile(accuracyPage, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(calibration, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(calibrationFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// accuracyOf is one draw. false: the pool did nothing that could be measured.
func accuracyOf(t *testing.T, tree *cgrouptest.Tree, seed uint64) (accuracyResult, bool) {
	text, pool := drawn(seed)
	s, err := scenario.Parse("drawn", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	l := record(t, tree, s, seed)
	out := accuracyResult{Seed: seed, Pool: pool}
	real, ok := realFigures(l, pool)
	if !ok {
		t.Logf("draw %d: nothing of %s was recorded", seed, pool)
		return out, false
	}
	// The first run is the recording; what the kernel then does again is another one.
	f, err := Make(l, Options{Seeds: 5, Seed: 1, Objective: &Objective{Quantile: 0.99, Bound: time.Hour, Pool: pool}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range accuracyRemedies {
		applied := s
		applied.Cgroups = slices.Clone(s.Cgroups)
		c := &applied.Cgroups[0]
		switch r.Name {
		case Pin:
			c.Remedy = &scenario.Remedy{Kind: scenario.Pin, CPUs: r.CPUs}
		case Burst:
			r.Burst = c.Limit.Quota
			c.Remedy = &scenario.Remedy{Kind: scenario.Burst, Burst: r.Burst}
		case Period:
			c.Remedy = &scenario.Remedy{Kind: scenario.Period, Period: r.Period}
		case Weight:
			c.Remedy = &scenario.Remedy{Kind: scenario.Weight}
		case Raise:
			c.Remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: r.Factor}
		}
		at := slices.IndexFunc(f.Rows, func(row Row) bool {
			return row.HostLoad == 0 && row.Refused == "" && row.Remedy.Name == r.Name && row.Remedy.Factor == r.Factor && row.Remedy.Period == r.Period
		})
		if at < 0 {
			continue // it was not forecast: such as a pin to as many CPUs as there are
		}
		row := &f.Rows[at]
		if r.Name == Pin && row.Remedy.CPUs != r.CPUs {
			continue
		}
		for _, p := range row.Figures.Pools {
			if p.Name != pool || p.Response.P99 == nil || row.Error.P99 == nil {
				continue
			}
			done := record(t, tree, applied, seed)
			was, ok := realFigures(done, pool)
			if !ok {
				continue
			}
			periods := l.Window.Seconds() / 0.1
			out.Remedies = append(out.Remedies, accuracyRow{
				Name: r.Name, P50: [2]float64{*p.Response.P50, was.p50}, P99: [2]float64{*p.Response.P99, was.p99}, Max: [2]float64{*p.Response.Max, was.max},
				Low: row.Error.P99.Low, High: row.Error.P99.High,
				Throttled: [2]float64{row.Figures.ThrottledPeriods / periods, was.throttled}, Stopped: [2]float64{row.Figures.Stopped.Seconds() / l.Window.Seconds(), was.stopped},
				ThrottledLow: row.Error.ThrottledPeriods.Low / periods, ThHigh: row.Error.ThrottledPeriods.High / periods,
			})
		}
	}
	out.Again = real.p99
	return out, len(out.Remedies) > 1 && out.Remedies[0].Name == None
}

type figuresForReal struct{ p50, p99, max, throttled, stopped float64 }

// realFigures are a recording's own.
func realFigures(l *Load, pool string) (f figuresForReal, ok bool) {
	for _, p := range l.Pools {
		if r := p.Recorded.Response; p.Name == pool && r.Count() >= 20 {
			f.p50, f.p99, f.max, ok = *r.Quantile(0.5), *r.Quantile(0.99), *r.Max(), true
		}
	}
	window := l.Window.Seconds()
	if n := l.Recorded.ThrottledPeriods; n != nil {
		f.throttled = float64(*n) / (window / 0.1)
	}
	if d := l.Recorded.Stopped; d != nil {
		f.stopped = d.Seconds() / window
	}
	return f, ok
}

// off is how far apart two times are, as the logarithm of their ratio.
func off(pair [2]float64) float64 { return math.Log(max(1e-3, pair[1]) / max(1e-3, pair[0])) }

// accuracyMarkdown is the page, and the residuals by remedy.
func accuracyMarkdown(all []accuracyResult) (string, Calibration) {
	var b strings.Builder
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(&b, "# Forecasts against what came\n\n%d random workloads of %s on 2 CPUs, Linux %s: each recorded once, forecast from that,\n"+
		"then run again under each remedy for real. Generated by `make accuracy-forecast`.\n\n", len(all), accuracyRun, strings.TrimSpace(string(release)))
	signs, right, within, covered, rows, named, agree := 0, 0, 0, 0, 0, 0, 0
	residuals := map[string][]accuracyRow{}
	for _, r := range all {
		none := r.Remedies[0]
		noise := max(math.Log(1.1), math.Abs(off([2]float64{r.Again, none.P99[1]})))
		if noise <= math.Log(1.25) {
			agree++
		}
		foretold, best := none, none
		for i, row := range r.Remedies {
			rows++
			residuals[row.Name] = append(residuals[row.Name], row)
			if math.Abs(off(row.P99)) <= math.Log(1.25) {
				within++
			}
			if row.P99[1] >= row.Low && row.P99[1] <= row.High {
				covered++
			}
			if row.P99[0] < foretold.P99[0] {
				foretold = row
			}
			if row.P99[1] < best.P99[1] {
				best = row
			}
			if effect := off([2]float64{none.P99[1], row.P99[1]}); i > 0 && math.Abs(effect) > noise {
				signs++
				if (effect > 0) == (row.P99[0] > none.P99[0]) {
					right++
				}
			}
		}
		// Of several that are as good, within the noise, each is the best.
		if off([2]float64{best.P99[1], foretold.P99[1]}) <= noise {
			named++
		}
	}
	share := func(n, of int) string {
		if of == 0 {
			return "-"
		}
		return fmt.Sprintf("%d of %d (%.0f %%)", n, of, 100*float64(n)/float64(of))
	}
	fmt.Fprintf(&b, "| | bound | came out |\n|---|---|---|\n"+
		"| the right sign, where the effect on p99 is above the noise | all | %s |\n| the best remedy named | 80 %% | %s |\n"+
		"| p99 within 25 %% | 80 %% | %s |\n| p99 within the 90 %% error | 85 to 95 %% | %s |\n"+
		"| the kernel agrees with itself: p99 of two runs within 25 %% | | %s |\n\n",
		share(right, signs), share(named, len(all)), share(within, rows), share(covered, rows), share(agree, len(all)))
	b.WriteString("Noise is how far the p99 of two runs as they were are apart, at least 10 %. Shares of periods and of time; p99 in ms, of the pool named.\n\n" +
		"| draw | pool | remedy | p99 foretold | 90 % | p99 came | throttled foretold, came | stopped foretold, came |\n|---|---|---|---|---|---|---|---|\n")
	calibration := Calibration{}
	for _, r := range all {
		for _, row := range r.Remedies {
			fmt.Fprintf(&b, "| %d | %s | %s | %.1f | %.1f to %.1f | %.1f | %.2f, %.2f | %.3f, %.3f |\n", r.Seed, r.Pool, row.Name, row.P99[0], row.Low, row.High, row.P99[1],
				row.Throttled[0], row.Throttled[1], row.Stopped[0], row.Stopped[1])
		}
	}
	for name, rows := range residuals {
		quantile := func(of func(accuracyRow) float64) float64 {
			var all []float64
			for _, row := range rows {
				all = append(all, math.Abs(of(row)))
			}
			slices.Sort(all)
			return math.Round(all[int(Coverage*float64(len(all)-1))]*1e4) / 1e4
		}
		calibration[name] = Residual{
			N: len(rows), P50: quantile(func(r accuracyRow) float64 { return off(r.P50) }), P99: quantile(func(r accuracyRow) float64 { return off(r.P99) }),
			Max:              quantile(func(r accuracyRow) float64 { return off(r.Max) }),
			ThrottledPeriods: quantile(func(r accuracyRow) float64 { return r.Throttled[1] - r.Throttled[0] }),
			Stopped:          quantile(func(r accuracyRow) float64 { return r.Stopped[1] - r.Stopped[0] }),
		}
	}
	return b.String(), calibration
}
