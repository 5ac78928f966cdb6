package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/bench/capacity"
)

func benchFigure(v float64) *float64 { return &v }
func benchCount(v uint64) *uint64    { return &v }

// benchExample is two remedies: one measured in full, one of which little is
// known.
func benchExample() capacity.Result {
	point := func(of float64) capacity.Point {
		return capacity.Point{
			OfBest: of, Load: 600 * of, P50: benchFigure(1.2), P90: benchFigure(4), P99: benchFigure(31.4), Max: benchFigure(140),
			Requests: 5000, Failed: 2, CPUUsed: benchFigure(0.52), Periods: benchCount(60), ThrottledPeriods: benchCount(14),
			StoppedLow: benchFigure(0.05), StoppedHigh: benchFigure(0.1), Switches: benchFigure(2400),
			Histogram: []capacity.Bin{{FromMs: 0, ToMs: 1, Count: 900}, {FromMs: 1, ToMs: 64, Count: 90}, {FromMs: 64, ToMs: 5000, Count: 10}},
		}
	}
	quota := capacity.Remedy{
		Remedy: "quota", MaxLoad: benchFigure(400), Loads: []float64{390, 400, 410}, CPUsGranted: benchFigure(1),
		Points: []capacity.Point{point(0.5), point(0.8)},
		Curve:  []capacity.Sample{{Load: 300, At: benchFigure(20), Met: true}, {Load: 305, At: benchFigure(22), Met: true}, {Load: 500, At: benchFigure(90)}},
	}
	pin := capacity.Remedy{
		Remedy: "pin", MaxLoad: benchFigure(600), Loads: []float64{590, 600, 610}, CPUsGranted: benchFigure(1),
		Ratio: benchFigure(1.5), RatioLow: benchFigure(1.42), RatioHigh: benchFigure(1.58),
		Points: []capacity.Point{{OfBest: 0.5, Load: 300}, {OfBest: 0.8, Load: 480}}, Noisy: true, Why: []string{"the generator used 0.07 CPUs"},
		Curve: []capacity.Sample{{Load: 600, At: benchFigure(45), Met: true}, {Load: 700}},
	}
	none := capacity.Remedy{Remedy: "period", Loads: []float64{0, 0, 0}, CPUsGranted: benchFigure(1)}
	return capacity.Result{
		Kernel: "6.12", CPUs: 2, Limit: 1, Shape: "pools", About: "short requests", Quantile: 0.99, BoundMs: 50, Errors: 0.001,
		Repeats: 3, Step: 5, BackgroundToo: true, Remedies: []capacity.Remedy{quota, pin, none}, Notes: []string{"3 repeats only"},
	}
}

func TestBenchService(t *testing.T) {
	var b bytes.Buffer
	if err := BenchService(&b, benchExample(), 80); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"Shape pools: short requests", "p99 within 50 ms, at most 0.1 % errors",
		"quota   1.0              400  390-410             -              -",
		"pin   1.0              600  590-610          1.50      1.42-1.58  noisy",
		"period   1.0         none met",
		"14 of 60", "5.0-10.0",
		"At the same CPUs as the quota: more load within the objective: pin 1.50x.",
		"Noisy: pin: the generator used 0.07 CPUs.", "Note: 3 repeats only.", "not background",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if width(strings.TrimRight(line, " \n")) > 80 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
}

// What was not measured is a dash, never a zero.
func TestBenchServiceNotMeasured(t *testing.T) {
	var b bytes.Buffer
	r := capacity.Result{URL: "http://localhost/", Remedies: []capacity.Remedy{{Remedy: "as it is", Points: []capacity.Point{{OfBest: 0.5, Load: 10}}}}}
	if err := BenchService(&b, r, 80); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "0.0") || !strings.Contains(text, "none met") || strings.Contains(text, "CPUs used") {
		t.Errorf("%s", text)
	}
}

func TestBenchServiceHTML(t *testing.T) {
	r := benchExample()
	r.Notes = []string{"<script>alert(1)</script>"}
	r.Kernel = "6.12<b>"
	r.Remedies[1].Remedy = `pin"><script>`
	var b bytes.Buffer
	if err := BenchServiceHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<b>", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<svg", "objective", "Latencies at 80 %", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(page, "<svg") != strings.Count(page, "</svg>") || strings.Count(page, "<circle") != 4 {
		t.Errorf("%d drawings, %d points", strings.Count(page, "<svg"), strings.Count(page, "<circle"))
	}
}

func TestBenchServiceHTMLOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := BenchServiceHTML(&b, capacity.Result{BoundMs: 50, Quantile: 0.99, Remedies: []capacity.Remedy{{Remedy: "quota"}}}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error(page)
	}
}
