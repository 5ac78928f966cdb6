package live

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
)

// TestJSONOfLess: where less is known than a recording tells, what is missing is null, never 0, "" or an empty list.
// UPDATE_GOLDEN=1 writes the files anew.
func TestJSONOfLess(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	seen := observe.Observation{Container: container.Container{Name: "cart"}, Window: 10 * time.Second, Start: at,
		StoppedLow: new(time.Second), StoppedHigh: new(4 * time.Second), UsedCPUs: new(1.0), LimitCPUs: new(2.0),
		ThrottledBy: observe.BySelf,
		Levels:      []cgroup.Level{{Limit: cgroup.Limit{Quota: 200 * time.Millisecond, Period: 100 * time.Millisecond}}},
		Periods:     new(uint64(100)), ThrottledPeriods: new(uint64(40))}
	between := seen
	between.UsedCPUs = new(1.8)
	nothing := observe.Observation{Container: container.Container{Name: "cart"}, Window: 10 * time.Second, Start: at}
	who := flightrecorder.Identity{Name: "cart"}
	periods := []flightrecorder.Period{{End: at, Length: 100 * time.Millisecond, MeanWidth: 0.5, MostWidth: 2,
		Stopped: 0.25, Flags: flightrecorder.Throttled}}
	for name, e := range map[string]diagnose.Explanation{
		"counters":           FromCounters(seen, "BPF was refused"),
		"counters-undecided": FromCounters(between, "BPF was refused"),
		"counters-unread":    FromCounters(nothing, "BPF was refused"),
		"periods":            FromPeriods(who, periods),
		"periods-none":       FromPeriods(who, nil),
	} {
		var got bytes.Buffer
		if err := view.JSON(&got, e, nil); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".json")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
