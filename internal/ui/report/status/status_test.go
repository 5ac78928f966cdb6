package status

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// A trial that nothing will judge any more is named, with the way out.
func TestTrials(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).UTC()
	for state, want := range map[txn.TrialState]string{
		txn.TrialRunning: "",
		txn.TrialAbandoned: "trial: pin of web (7) was on trial, and process 4711, which was to judge it, has ended: " +
			"'unthrottle restore' puts it back",
		txn.TrialOverdue: "trial: pin of web (7) was on trial, and process 4711 was to judge it by " +
			"2023-11-14T22:13:20Z: 'unthrottle restore'",
	} {
		var b strings.Builder
		f := txn.InForce{ID: "7", Target: "/web", Name: "web", Remedy: "pin", Since: now,
			Trial: &txn.Trial{Of: "7", PID: 4711, Until: now, State: state}}
		if err := Write(&b, []txn.InForce{f}, nil, now, page.Style{Width: page.Unbounded}); err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(b.String(), "0 ms ago")
		_, line, _ = strings.Cut(line, "\n")
		if !strings.HasPrefix(line, want) || want == "" && line != "" {
			t.Errorf("%s: %q, want %q", state, line, want)
		}
	}
}

// How long it was stopped since its remedy was judged is told, and where that is longer than before, with the way out.
func TestStops(t *testing.T) {
	now := time.Unix(1_700_000_000, 0).UTC()
	kept := txn.InForce{ID: "7", Target: "/web", Name: "web", Remedy: "burst", Since: now,
		Stops: &txn.Stops{Seconds: 7200, StoppedPerSecondLow: 0.1, StoppedPerSecondHigh: 0.4}}
	worse := kept
	worse.Stops = &txn.Stops{Seconds: 7200, StoppedPerSecondLow: 0.1, StoppedPerSecondHigh: 0.4, Longer: true}
	for _, c := range []struct {
		f    txn.InForce
		want string
	}{
		{kept, "\nstops: web: 100-400 ms/s over 2 h since burst was judged\n"},
		{worse, "\nstops: web: 100-400 ms/s over 2 h since burst was judged, longer than before it: 'unthrottle restore' undoes it\n"},
	} {
		var b strings.Builder
		if err := Write(&b, []txn.InForce{c.f}, nil, now, page.Style{Width: page.Unbounded}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.want) {
			t.Errorf("%q, want %q", b.String(), c.want)
		}
	}
}

func TestForecasts(t *testing.T) {
	var b strings.Builder
	err := Forecasts(&b, []txn.Accuracy{
		{Remedy: "burst", Figure: "pool_p99_ms", Measured: 4, Within: 3, Ratio: new(1.12)},
		{Remedy: "pin", Figure: "stopped_per_second", Measured: 1, Within: 1}}, page.Style{Width: page.Unbounded})
	want := "forecasts: burst, p99 of the judged pool: 3 of 4 came within the interval; at the median 1.12 times the forecast\n" +
		"forecasts: pin, stopped time: 1 of 1 came within the interval\n"
	if err != nil || b.String() != want {
		t.Errorf("%q, %v", b.String(), err)
	}
	one := new(1.0) // each figure that is forecast and measured has a name
	for _, d := range txn.Deviations(&txn.Expected{StoppedPerSecondLow: one, StoppedPerSecondHigh: one,
		UsedCPUsLow: one, UsedCPUsHigh: one, P99MsLow: one, P99MsHigh: one,
		PoolP99MsLow: one, PoolP99MsHigh: one, RequestsP99MsLow: one, RequestsP99MsHigh: one},
		&txn.Outcome{After: &txn.Figures{StoppedPerSecondLow: one,
			StoppedPerSecondHigh: one, UsedCPUs: one, P99Ms: one, PoolP99Ms: one, RequestsP99Ms: one}}) {
		if figures[d.Figure] == "" {
			t.Errorf("%s has no name", d.Figure)
		}
	}
}
