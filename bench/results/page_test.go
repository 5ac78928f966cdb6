package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

func value(v float64) *float64 { return &v }

func TestPage(t *testing.T) {
	held, periods := uint64(5), uint64(60)
	pools := capacity.Result{
		Shape: "pools", About: "short requests", Limit: 1, Quantile: 0.99, BoundMs: 50, Errors: 0.001,
		Remedies: []capacity.Remedy{
			{Remedy: "quota", MaxLoad: value(400), Loads: []float64{390, 410}, CPUsGranted: value(1),
				Points: []capacity.Point{
					{OfBest: 0.5, Load: 200, P50: value(1), ThrottledPeriods: &held, Periods: &periods,
						StoppedLow: value(0.05), StoppedHigh: value(0.1)}}},
			{Remedy: "pin", MaxLoad: value(600), Loads: []float64{600}, CPUsGranted: value(1), Ratio: value(1.5),
				RatioLow: value(1.4), RatioHigh: value(1.6), Why: []string{"the generator used 0.07 CPUs"}},
			{Remedy: "weight", Loads: []float64{0}, CPUsGranted: value(2), Ratio: value(3), RatioLow: value(2), RatioHigh: value(4)},
		},
	}
	spiral := capacity.Spiral{Normal: 200, Spike: 800, For: 1, Watched: 12, Timeout: 0.15, Runs: []capacity.SpiralRun{
		{Remedy: "quota", Granted: 1, Recovery: []float64{-1, 3.25}, Good: 0.5},
		{Remedy: "quota", Granted: 1, Left: capacity.NoRetries, Recovery: []float64{0}, Good: 1}}}
	price := capacity.Price{Load: 250, Rows: []capacity.PriceRow{
		{Remedy: "quota", Granted: 1, Empty: []float64{10}, Full: []float64{12.5},
			Predictability: &stats.Ratio{Mean: 1.25, Low: 1.2, High: 1.3}}}}
	forecasts := predicted{[]predictedRow{{"quota", value(1.25)}, {"pin", value(1.75)}, {"weight", nil}}}
	have := &study.Lines[measured]{File: filepath.Join(t.TempDir(), "results", "records.jsonl.gz")}
	for _, m := range []measured{
		{Part: "price", Scale: "quick", Price: &price},
		{Part: "gc", Failed: "no luck"},
		{Part: "spike", Scale: "full", Spiral: &spiral, Repeats: 1},
		{Part: "pools", Scale: "quick", Made: study.Made{Machine: study.Machine()}, Shape: &pools,
			Predicted: &forecasts, Repeats: 3, Steps: 2, Step: 2 * time.Second},
	} {
		for range 2 { // the last one counts
			if err := keep(have, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	have, err := study.ReadLines[measured](have.File)
	if err != nil || len(have.All) != 4 {
		t.Fatalf("%d parts, %v", len(have.All), err)
	}
	text := markdown(have.All)
	rest := text
	for _, want := range []string{
		"## In short", "| shape | pin (1 CPU) | weight (2 CPUs) |", "| `pools` | **1.50** (1.40) | 3.00, none met in 1 of 1 repeats |",
		"## A spike", "200 requests per second: for 1 s 800 per second, then 200 again, watched for 12 s. A client " +
			"gives a try up after 150 ms",
		"| quota | 1.0 | - | never, 3.25 | 50 % |", "| quota | 1.0 | no retries | 0 | 100 % |", "scale full, 1 repeat.",
		"| quota | 1.0 | 10.0 | 12.5 | 1.25 | 1.20 to 1.30 | - | - |", "scale quick",
		"### Shape `pools`\n\nShort requests. Limit 1 CPU; objective p99 within 50 ms, at most 0.1 % errors.",
		"| quota | 1.0 | 400 (390, 410) | - | - | - | |", "| pin | 1.0 | 600 (600) | 1.50 | 1.40 to 1.60 | 1.40 | the generator used 0.07 CPUs |",
		"| weight | 2.0 | none met (0) | 3.00 |", "At equal CPUs pin (1.50) carried more load than the plain quota.",
		"Predicted: 1 of 1 are within", "| 50 % | 200 | quota | 1.0 | - | - | 0 | - | 5 of 60 | 5.0 to 10.0 |", "3 repeats of each search, 2 steps of 2s",
		"Not measured yet: `pool`, `gc`, `mixed`, gc failed: no luck.",
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
}

// The page is of the records, all of them.
func TestPageIsOfTheRecords(t *testing.T) {
	have, err := study.ReadLines[measured]("records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	if !complete(have.All) {
		return // the page is of a run before records were kept
	}
	page, err := os.ReadFile("../../docs/results/service.md")
	if err != nil || string(page) != markdown(have.All) {
		t.Errorf("docs/results/service.md is not of its records: make results RESULTS_PARTS=none (%v)", err)
	}
}

// A remedy that carried the most that a search tries may carry more: its ratio is a bound, and not bold.
func TestASearchThatEnded(t *testing.T) {
	carries, err := capacity.Carries("mixed", 1)
	if err != nil {
		t.Fatal(err)
	}
	row := capacity.Remedy{Remedy: capacity.Pools, CPUsGranted: value(1), Ratio: value(7.29), RatioLow: value(5.42), RatioHigh: value(9.82)}
	for load, want := range map[float64]string{capacity.MostShare * carries: "at least 7.29: the search ended below in 2 of 2 repeats", carries: "**7.29**"} {
		row.Loads = []float64{load, load}
		m := measured{Shape: &capacity.Result{Shape: "mixed", Limit: 1, Remedies: []capacity.Remedy{row}}}
		if got := m.Ratio(capacity.Pools); got != want {
			t.Errorf("%g: %s, want %s", load, got, want)
		}
	}
}

// What fix chose is compared with the best remedy that apply knows, at equal CPUs.
func TestBesideFix(t *testing.T) {
	value := func(v float64) *float64 { return &v }
	row := func(name string, granted, low, ratio, high float64) capacity.Remedy {
		return capacity.Remedy{Remedy: name, CPUsGranted: value(granted), Ratio: value(ratio), RatioLow: value(low), RatioHigh: value(high)}
	}
	quota := capacity.Remedy{Remedy: capacity.Quota, CPUsGranted: value(1)}
	resultOf := func(rows ...capacity.Remedy) capacity.Result {
		return capacity.Result{Remedies: append([]capacity.Remedy{quota, row(capacity.Weight, 2, 2, 2.2, 2.4),
			row(capacity.Pools, 1, 3, 3.1, 3.2)}, rows...)}
	}
	burst, pin := row(capacity.Burst, 1, 1.3, 1.4, 1.5), row(capacity.Pin, 1, 0.8, 0.9, 1)
	for _, c := range []struct {
		of               capacity.Result
		compared, asGood bool
	}{
		{resultOf(burst, pin, row(capacity.Fix, 1, 1.2, 1.35, 1.5)), true, true},
		{resultOf(burst, pin, row(capacity.Fix, 1, 0.9, 1, 1.1)), true, false},
		{resultOf(burst, pin), false, false},
	} {
		if compared, asGood := besideFix(c.of); compared != c.compared || asGood != c.asGood {
			t.Errorf("%+v: %v, %v", c, compared, asGood)
		}
	}
}
