package agent

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

func TestSheddingFollowsTheBudget(t *testing.T) {
	s := shedder{own: policy.Own{CPU: 0.01, MemoryBytes: 64 << 20}}
	looks := func(n int, cpu float64, resident int64) (changes int) {
		for range n {
			if s.judge(cpu, resident) != "" {
				changes++
			}
		}
		return changes
	}
	for _, step := range []struct {
		what     string
		n        int
		cpu      float64
		resident int64
		want     shedding
	}{
		{"one look above", 1, 0.02, 0, shedNothing},
		{"a look below ends the row", 1, 0.001, 0, shedNothing},
		{"another one above", 1, 0.02, 0, shedNothing},
		{"two in a row: recordings first", 1, 0.02, 0, shedRecordings},
		{"then periods, for memory too", 2, 0, 65 << 20, shedPeriods},
		{"then the rate", 2, 0.02, 0, shedRate},
		{"and nothing else", 20, 0.02, 0, shedRate},
		{"near the budget nothing comes back", 50, 0.009, 0, shedRate},
		{"well below it the last comes back first", 10, 0.001, 1 << 20, shedPeriods},
		{"then the others", 20, 0.001, 1 << 20, shedNothing},
	} {
		looks(step.n, step.cpu, step.resident)
		if s.level != step.want {
			t.Fatalf("%s: %v dropped, want %v", step.what, s.level.dropped(), step.want.dropped())
		}
	}
	s = shedder{}
	if looks(100, 50, 1<<40) > 0 {
		t.Error("without a budget something is dropped")
	}
}

func TestWhatIsDroppedStops(t *testing.T) {
	a, _ := flightAgent(t, func(context.Context, container.Container, io.Writer) error { return nil })
	a.Rules.Interval = time.Second
	began, ended := make(chan bool), make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- a.budget.unless(ctx, shedPeriods, func(ctx context.Context) error {
			began <- true
			<-ctx.Done()
			ended <- true
			return nil
		})
	}()
	<-began
	a.budget.set(shedRecordings) // does not end it
	a.budget.set(shedRate)
	<-ended
	if got := a.interval(); got != slowRounds*time.Second {
		t.Errorf("rounds of %v", got)
	}
	a.budget.set(shedRecordings)
	<-began
	cancel()
	<-ended
	if err := <-done; err != nil {
		t.Error(err)
	}

	// Recordings: the most stopped is due only while nothing is dropped.
	a.recorder.due = make(chan dueRecording, 1)
	round := observe.Snapshot{Observations: []observe.Observation{stoppedFor(1, "a", 1)}}
	if a.recorder.round(round); len(a.recorder.due) > 0 {
		t.Error("a recording is due while recordings are dropped")
	}
	a.budget.set(shedNothing)
	if a.recorder.round(round); len(a.recorder.due) == 0 {
		t.Error("no recording is due while nothing is dropped")
	}
}

func TestStatusLearnsWhatIsDropped(t *testing.T) {
	dir := t.TempDir()
	a := &agent{Config: Config{Env: apply.Env{StateDir: dir}, Log: slog.New(slog.DiscardHandler), Rules: policy.Rules{}}}
	if d, err := ReadDropped(dir); d != nil || err != nil {
		t.Error(d, err)
	}
	a.tellDropped(shedPeriods, "2 % of a CPU")
	if d, err := ReadDropped(dir); err != nil || d == nil || !slices.Equal(d.What, []string{"recordings", "periods"}) ||
		d.Why != "2 % of a CPU" {
		t.Error(d, err)
	}
	a.tellDropped(shedNothing, "")
	if d, err := ReadDropped(dir); d != nil || err != nil {
		t.Error(d, err)
	}
}

// What is kept of the fleet's rows is in the metrics and for status to tell, and what ends is no longer told.
func TestStatusLearnsWhatIsExported(t *testing.T) {
	state, dir, noon := t.TempDir(), t.TempDir(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a := &agent{Config: Config{Env: apply.Env{StateDir: state}, Log: slog.New(slog.DiscardHandler),
		Rules: policy.Rules{Export: policy.DefaultExport()}}}
	a.now = func() time.Time { return noon.Add(10 * time.Minute) }
	figures := func() map[string]float64 {
		r := prometheus.NewRegistry()
		r.MustRegister(exportFigures{a.sink})
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
		return got
	}
	if got := figures(); len(got) != 0 {
		t.Errorf("without export: %v", got)
	}
	a.Rules.Export.Dir, a.Rules.Export.Node = dir, "n1"
	for _, at := range []time.Time{noon, noon.AddDate(0, 0, -40)} {
		if err := store.Write(dir, []demand.Row{
			{Schema: demand.SchemaVersion, Start: at, Began: at, Node: "n1", Container: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.export(); err != nil {
		t.Fatal(err)
	}
	if e, err := ReadExporting(state); e != nil || err != nil {
		t.Errorf("before the first rows: %+v, %v", e, err)
	}
	o := stoppedFor(7, "web", 0)
	o.Start = noon.Add(5 * time.Minute)
	a.sink.Round([]observe.Observation{o})
	if _, err := a.sink.Close(nil); err != nil {
		t.Fatal(err)
	}
	e, err := ReadExporting(state)
	if err != nil || e == nil || e.Removed != 1 || e.Dir != dir || e.Bytes == 0 || !e.From.Equal(noon) {
		t.Fatalf("%+v, %v", e, err)
	}
	if got := figures(); got["unthrottle_export_removed_files_total"] != 1 || got["unthrottle_export_bytes"] != float64(e.Bytes) {
		t.Errorf("%v", got)
	}
	a.Rules.Export.Dir = ""
	if err := a.export(); err != nil {
		t.Fatal(err)
	}
	if e, err := ReadExporting(state); e != nil || err != nil {
		t.Errorf("without export: %+v, %v", e, err)
	}
}
