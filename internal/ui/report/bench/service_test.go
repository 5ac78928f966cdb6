package bench

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

// example is two remedies: one measured in full, one of which little is
// known.
func example() capacity.Result {
	point := func(of float64) capacity.Point {
		return capacity.Point{
			OfBest: of, Load: 600 * of, P50: new(1.2), P90: new(4.0), P99: new(31.4), Max: new(140.0),
			Requests: 5000, Failed: 2, CPUUsed: new(0.52), Periods: new(uint64(60)), ThrottledPeriods: new(uint64(14)),
			StoppedLow: new(0.05), StoppedHigh: new(0.1), Switches: new(2400.0),
			Histogram: []capacity.Bin{{FromMs: 0, ToMs: 1, Count: 900}, {FromMs: 1, ToMs: 64, Count: 90},
				{FromMs: 64, ToMs: 5000, Count: 10}},
		}
	}
	quota := capacity.Remedy{
		Remedy: "quota", MaxLoad: new(400.0), Loads: []float64{390, 400, 410}, CPUsGranted: new(1.0),
		Points: []capacity.Point{point(0.5), point(0.8)},
		Curve:  []capacity.Sample{{Load: 300, At: new(20.0), Met: true}, {Load: 305, At: new(22.0), Met: true}, {Load: 500, At: new(90.0)}},
	}
	pin := capacity.Remedy{
		Remedy: "pin", MaxLoad: new(600.0), Loads: []float64{590, 600, 610}, CPUsGranted: new(1.0),
		Ratio: new(1.5), RatioLow: new(1.42), RatioHigh: new(1.58),
		Points: []capacity.Point{{OfBest: 0.5, Load: 300}, {OfBest: 0.8, Load: 480}}, Noisy: true,
		Why:   []string{"the generator used 0.07 CPUs"},
		Curve: []capacity.Sample{{Load: 600, At: new(45.0), Met: true}, {Load: 700}},
	}
	none := capacity.Remedy{Remedy: "period", Loads: []float64{0, 0, 0}, CPUsGranted: new(1.0)}
	return capacity.Result{
		Kernel: "6.12", CPUs: 2, Limit: 1, Shape: "pools", About: "short requests", Quantile: 0.99, BoundMs: 50, Errors: 0.001,
		Repeats: 3, Step: 5, BackgroundToo: true, Remedies: []capacity.Remedy{quota, pin, none}, Notes: []string{"3 repeats only"},
	}
}

func TestService(t *testing.T) {
	var b bytes.Buffer
	if err := Service(&b, example(), page.Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"Shape pools: short requests", "p99 within 50 ms, at most 0.1 % errors",
		"quota   1.0              400  390-410             -              -",
		"pin   1.0              600  590-610          1.50      1.42-1.58  noisy",
		"period   1.0         none met",
		"14 of 60", "5.0-10.0",
		"At the same CPUs as the quota: more load within the objective: pin 1.50x.",
		"Noisy: pin: the generator used 0.07 CPUs.", "Note: 3 repeats only.", "not background",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if text.Width(strings.TrimRight(line, " \n")) > 80 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
}

// What was not measured is a dash, never a zero.
func TestServiceNotMeasured(t *testing.T) {
	var b bytes.Buffer
	r := capacity.Result{URL: "http://localhost/",
		Remedies: []capacity.Remedy{{Remedy: "as it is", Points: []capacity.Point{{OfBest: 0.5, Load: 10}}}}}
	if err := Service(&b, r, page.Style{Width: 80}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "0.0") || !strings.Contains(text, "none met") || strings.Contains(text, "CPUs used") {
		t.Errorf("%s", text)
	}
}

func TestServiceHTML(t *testing.T) {
	r := example()
	r.Notes = []string{"<script>alert(1)</script>"}
	r.Kernel = "6.12<b>"
	r.Remedies[1].Remedy = `pin"><script>`
	var b bytes.Buffer
	if err := ServiceHTML(&b, r, webpage.Origin{Host: "node-7", Version: "v1"}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if name := os.Getenv("UNTHROTTLE_BENCH_HTML"); name != "" { // to look at it
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"<script", "6.12<b>", "http://", "https://", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"<svg", "objective", "Latencies at 80 %", "are noisy: the notes say why", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(page, "<svg") != strings.Count(page, "</svg>") || strings.Count(page, `class="point`) < 4 ||
		strings.Contains(page, "<pre>quota") {
		t.Errorf("%d drawings, %d points", strings.Count(page, "<svg"), strings.Count(page, "<circle"))
	}
}

func TestServiceHTMLOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := ServiceHTML(&b, capacity.Result{BoundMs: 50, Quantile: 0.99,
		Remedies: []capacity.Remedy{{Remedy: "quota"}}}, webpage.Origin{}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error(page)
	}
}
