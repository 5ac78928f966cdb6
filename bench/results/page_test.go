package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/predict"
	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
)

func value(v float64) *float64 { return &v }

func TestPage(t *testing.T) {
	held, periods := uint64(5), uint64(60)
	pools := capacity.Result{
		Shape: "pools", About: "short requests", Limit: 1, Quantile: 0.99, BoundMs: 50, Errors: 0.001,
		Remedies: []capacity.Remedy{
			{Remedy: "quota", MaxLoad: value(400), Loads: []float64{390, 410}, CPUsGranted: value(1),
				Points: []capacity.Point{{OfBest: 0.5, Load: 200, P50: value(1), ThrottledPeriods: &held, Periods: &periods, StoppedLow: value(0.05), StoppedHigh: value(0.1)}}},
			{Remedy: "pin", MaxLoad: value(600), Loads: []float64{600}, CPUsGranted: value(1), Ratio: value(1.5), RatioLow: value(1.4), RatioHigh: value(1.6), Why: []string{"the generator used 0.07 CPUs"}},
			{Remedy: "weight", Loads: []float64{0}, CPUsGranted: value(2), Ratio: value(3), RatioLow: value(2), RatioHigh: value(4)},
		},
	}
	spiral := capacity.Spiral{Normal: 200, Spike: 800, For: 1, Watched: 12, Timeout: 0.15, Runs: []capacity.SpiralRun{
		{Remedy: "quota", Granted: 1, Recovery: []float64{-1, 3.25}, Good: 0.5}, {Remedy: "quota", Granted: 1, Left: capacity.NoRetries, Recovery: []float64{0}, Good: 1}}}
	price := capacity.Price{Load: 250, Rows: []capacity.PriceRow{{Remedy: "quota", Granted: 1, Empty: []float64{10}, Full: []float64{12.5}, Predictability: &stats.Ratio{Mean: 1.25, Low: 1.2, High: 1.3}}}}
	forecasts := predicted{Load: 320, Window: 10 * time.Second, Rows: []predict.Row{{Remedy: "quota", BreaksAt: value(1.25)}, {Remedy: "pin", BreaksAt: value(1.75)}, {Remedy: "weight"}}}
	dir := filepath.Join(t.TempDir(), "results")
	for _, m := range []measured{
		{Part: "price", Scale: "quick", Price: &price},
		{Part: "gc", Failed: "no luck"},
		{Part: libraryPart, Scale: "full", Library: []capacity.Result{pools}},
		{Part: "spike", Scale: "full", Spiral: &spiral, Repeats: 1},
		{Part: "pools", Scale: "quick", Made: study.Made{Machine: study.Machine()}, Shape: &pools, Predicted: &forecasts, Repeats: 3, Steps: 2, Step: 2 * time.Second},
	} {
		if err := study.Write(keptName(dir, m.Part), m); err != nil {
			t.Fatal(err)
		}
	}
	all, err := kept(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := markdown(all)
	rest := text
	for _, want := range []string{
		"## In short", "| shape | pin (1 CPU) | weight (2 CPUs) |", "| `pools` | **1.50** (1.40) | **3.00** |",
		"| quota | 1.0 | - | never, 3.25 | 50 % |", "| no retries | 0 | 100 % |", "scale full, 1 repeat.",
		"| quota | 1.0 | 10.0 | 12.5 | 1.25 | 1.20 to 1.30 | - | - |",
		"## Shape `pools`", "Short requests. Limit 1 CPU; objective p99 within 50 ms, at most 0.1 % errors.",
		"| quota | 1.0 | 400 (390, 410) | - | - | - |", "| pin | 1.0 | 600 (600) | 1.50 | 1.40 to 1.60 | 1.40 | the generator used 0.07 CPUs |",
		"| weight | 2.0 | none met (0) | 3.00 | 2.00 to 4.00 | - |",
		"At equal CPUs pin (1.50) carried more load than the plain quota.",
		"at 320 requests per second", "(predicted: 400 requests per second)", "1 of 1 are within",
		"| 50 % | 200 | quota | 1.0 | - |", "5 of 60", "5.0 to 10.0",
		"Linux", "scale quick, 3 repeats of each search, 2 steps of 2s.",
		"## `gc`", "Not measured: no luck",
		"## The library in the program", "| `pools` | pin | 600 (600) | 109 % | 1.50 | 1.40 to 1.60 |",
		"Not measured yet: `pool`, `mixed`.",
	} {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("%q is missing, or not in its place, in\n%s", want, text)
		}
		rest = rest[i+len(want):]
	}
	if strings.Contains(text, "%!") {
		t.Errorf("a verb without its value:\n%s", text)
	}
	if err := os.WriteFile(keptName(dir, "mixed"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := kept(dir); err == nil || !strings.Contains(err.Error(), "mixed.json") {
		t.Errorf("a damaged part: %v", err)
	}
}

// What fix chose is compared with the best remedy that apply knows, at equal CPUs.
func TestBesideFix(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	row := func(name string, granted, low, ratio, high float64) capacity.Remedy {
		return capacity.Remedy{Remedy: name, CPUsGranted: value(granted), Ratio: value(ratio), RatioLow: value(low), RatioHigh: value(high)}
	}
	quota := capacity.Remedy{Remedy: capacity.Quota, CPUsGranted: value(1)}
	of := func(rows ...capacity.Remedy) capacity.Result {
		return capacity.Result{Remedies: append([]capacity.Remedy{quota, row(capacity.Weight, 2, 2, 2.2, 2.4), row(capacity.Pools, 1, 3, 3.1, 3.2)}, rows...),
			Notes: []string{"3 repeats only", "fix chose burst 100ms"}}
	}
	burst, pin := row(capacity.Burst, 1, 1.3, 1.4, 1.5), row(capacity.Pin, 1, 0.8, 0.9, 1)
	for _, c := range []struct {
		of     capacity.Result
		asGood bool
		want   string
	}{
		{of(burst, pin, row(capacity.Fix, 1, 1.2, 1.35, 1.5)), true, "`fix` chose burst 100ms. It carries as much as the best single remedy at equal CPUs, burst: 1.35 (1.20 to 1.50) beside 1.40 (1.30 to 1.50)."},
		{of(burst, pin, row(capacity.Fix, 1, 0.9, 1, 1.1)), false, "carries **less** than"},
		{of(burst, pin), false, ""},
	} {
		if told, asGood := besideFix(c.of); asGood != c.asGood || !strings.Contains(told, c.want) || (c.want == "") != (told == "") {
			t.Errorf("%v %q, want %v %q", asGood, told, c.asGood, c.want)
		}
	}
}
