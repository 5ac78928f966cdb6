package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/forecast"
)

// Containers of which none could be forecast are no success; a host without a limit is.
func TestExitCodeOfForecastAll(t *testing.T) {
	made, failed := []*forecast.Forecast{{}}, []string{"web: it is gone", "db: it did not run"}
	for _, c := range []struct {
		all  view.All
		want int
	}{
		{view.All{}, exitFine}, {view.All{All: made}, exitFine}, {view.All{All: made, NotForecast: failed}, exitFine},
		{view.All{NotForecast: failed}, exitNotMeasurable},
	} {
		if got := exitCode(noneMade(&c.all), false); got != c.want {
			t.Errorf("%d forecast and %d not: exit code %d, want %d", len(c.all.All), len(c.all.NotForecast), got, c.want)
		}
	}
}

// writtenRecording is a recording of a pool that spends its quota, as a file; less bytes of it at the end are left out.
func writtenRecording(t *testing.T, limited bool, less int) string {
	t.Helper()
	const ms = time.Millisecond
	s := rt.New(8).Process("java")
	if limited {
		s.Limit(50*ms, 100*ms)
	}
	w := s.Threads("http-worker", 8)
	s.Repeat(8, 250*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
	r := s.Run(2 * time.Second)
	name := filepath.Join(t.TempDir(), "cart.utr")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out, err := recording.NewWriter(file, r.Header)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		if err := out.Write(&r.Events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(r.Footer); err != nil {
		t.Fatal(err)
	}
	if less > 0 {
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(info.Size() - int64(less)); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// The contract of --json.
func TestForecastJSON(t *testing.T) {
	name := writtenRecording(t, true, 0)
	out := decoded[map[string]any](t, unraced(t, "forecast", name, "--json", "--slo", "p99=20ms", "--load", "1..2", "--repeat", "2"), 0)
	if out["target"] != "shop/cart" || out["cheapest"] != "raise" && out["cheapest"] != "burst" {
		t.Errorf("target %v, cheapest %v", out["target"], out["cheapest"])
	}
	seen, full := map[string]bool{}, 0
	for _, item := range out["rows"].([]any) {
		row := item.(map[string]any)
		for _, key := range []string{"remedy", "parameters", "throttled_periods", "stopped_seconds", "p50_ms", "p99_ms",
			"max_ms", "cpus_reserved", "error", "modelled"} {
			if _, ok := row[key]; !ok {
				t.Errorf("%v has no %s", row["remedy"], key)
			}
		}
		seen[row["remedy"].(string)] = true
		if row["host_load"] != nil {
			full++
		}
		if modelled := row["modelled"].(bool); modelled != (row["error"] == nil) {
			t.Errorf("%v: modelled %v, error %v", row["remedy"], modelled, row["error"])
		}
	}
	for _, remedy := range []string{"none", "pin", "narrow", "burst", "period", "weight", "raise", "pools", "shards"} {
		if !seen[remedy] {
			t.Errorf("no row %s", remedy)
		}
	}
	if full*2 != len(out["rows"].([]any)) {
		t.Errorf("%d of %d rows on a full host", full, len(out["rows"].([]any)))
	}
}

func TestForecastText(t *testing.T) {
	name := writtenRecording(t, true, 0)
	r := unraced(t, "forecast", name, "--slo", "p99=20ms", "--repeat", "2", "--pools")
	for _, want := range []string{"raise to 0.75 CPUs", "the objective is at most 20.0 ms", "p99 at 90 %", "Self-check",
		"modelled, not replayed", "Smallest limit that keeps it", "http-worker-*"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", r.code, want, r.out, r.errors)
		}
	}
}

// The least CPUs of each remedy, for people and for programs.
func TestForecastSmallest(t *testing.T) {
	name := writtenRecording(t, true, 0)
	r := unraced(t, "forecast", name, "--smallest", "--repeat", "2")
	for _, want := range []string{"Least CPUs with which p99 of pool http-worker-*", "limit of 0.", "pin to 6 CPUs",
		"budget: none: "} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", r.code, want, r.out, r.errors)
		}
	}
	out := decoded[struct {
		RecordedAt *time.Time `json:"recorded_at"`
		Priced     []struct {
			Remedy     string
			Parameters map[string]any
			CPUs       *float64
			Why        *string `json:"why_none"`
		}
	}](t, unraced(t, "forecast", name, "--smallest", "--json", "--repeat", "2"), 0)
	if want := 7 + len(forecast.LongPeriods); out.RecordedAt == nil || len(out.Priced) != want || out.Priced[0].Remedy != "limit" {
		t.Errorf("%+v, want %d", out, want)
	}
	seen := map[string]bool{}
	for _, p := range out.Priced {
		key := fmt.Sprint(p.Remedy, p.Parameters["period_seconds"])
		if seen[key] {
			t.Errorf("%s twice, and nothing tells which is which", key)
		}
		seen[key] = true
		if (p.CPUs == nil) != (p.Why != nil) {
			t.Errorf("%+v", p)
		}
	}
}

// What the agent finds in a recording is what rows have of it.
func TestPriceFile(t *testing.T) {
	replays := 0
	p, err := priceFile(t.Context(), writtenRecording(t, true, 0), objective.Objective{}, func(n int, do func(int) error) error {
		for i := range n {
			replays++
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || p.Of != "http-worker-*" || p.Quantile != 0.99 || p.Bound < 50*time.Millisecond || len(p.Prices) != 7 ||
		p.Recorded.IsZero() || replays == 0 || replays > 300 {
		t.Fatalf("%d replays, %v: %+v", replays, err, p)
	}
	for _, r := range p.Prices {
		if (r.MilliCPUs == nil) != (r.Why != "") ||
			r.MilliCPUs != nil && (*r.LowMilliCPUs > *r.MilliCPUs || *r.MilliCPUs < 240 || *r.Microseconds == 0) {
			t.Errorf("%+v", r)
		}
	}
	if _, err := priceFile(t.Context(), writtenRecording(t, false, 0), objective.Objective{}, nil); err == nil {
		t.Error("a container without a limit has a price")
	}
}

func TestForecastRefuses(t *testing.T) {
	good, cut, unlimited := writtenRecording(t, true, 0), writtenRecording(t, true, 60), writtenRecording(t, false, 0)
	if r := unraced(t, "forecast", cut, "--repeat", "1"); r.code != 0 || !strings.Contains(r.out, "is truncated") {
		t.Errorf("cut off: exit code %d\n%s%s", r.code, r.out, r.errors)
	}
	dir := t.TempDir()
	newer, empty := filepath.Join(dir, "newer"), filepath.Join(dir, "empty")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	text[8] = 9
	if err := os.WriteFile(newer, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"version 9", []string{newer}},
		{"it is empty", []string{empty}},
		{"has a CPU limit", []string{unlimited}},
		{"TARGET is missing", nil},
		{"takes no TARGET", []string{good, "--all"}},
		{`--slo "fast": there is no "<"`, []string{good, "--slo", "fast"}},
		{`--slo "p99=-1ms"`, []string{good, "--slo", "p99=-1ms"}},
		{"--load 3..1: give two factors", []string{good, "--load", "3..1"}},
		{"--load NaN..NaN", []string{good, "--load", "NaN..NaN"}},
		{"--host-load 200%", []string{good, "--host-load", "200%"}},
		{"--repeat 0", []string{good, "--repeat", "0"}},
		{"--pool goes with --slo", []string{good, "--pool", "x"}},
		{`--pool pool "x": the recording has`, []string{good, "--pool", "x", "--slo", "p99=1ms"}},
		{"--for 1ms", []string{"cart", "--for", "1ms"}},
	} {
		if r := unraced(t, append([]string{"forecast"}, c.args...)...); r.code != 2 || !strings.Contains(r.errors, c.says) {
			t.Errorf("%v: exit code %d, %q; want 2 and %q", c.args, r.code, r.errors, c.says)
		}
	}
	// Not enough CPUs is told in the row.
	if r := unraced(t, "forecast", good, "--cpus", "8", "--repeat", "1"); r.code != 0 ||
		!strings.Contains(r.out, "not possible: pin to 8 of 8 CPUs leaves none for others") {
		t.Errorf("pin to all: exit code %d\n%s%s", r.code, r.out, r.errors)
	}
}
