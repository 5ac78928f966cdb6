package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	recorded "github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// rowsProbe gives the rows that a test sends.
type rowsProbe struct{ rows chan probe.PeriodRow }

func (rowsProbe) Watch(probe.Container) error          { return nil }
func (rowsProbe) Unwatch(uint64) error                 { return nil }
func (rowsProbe) Measure(func(probe.Work, func()))     {}
func (rowsProbe) ReadInto(uint64, *probe.Counts) error { return nil }
func (p rowsProbe) PeriodRows(ctx context.Context, sink func(probe.PeriodRow) error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-p.rows:
			if err := sink(r); err != nil {
				return err
			}
		}
	}
}

func flightAgent(t *testing.T, record func(context.Context, container.Container, io.Writer) error) (*agent, rowsProbe) {
	t.Helper()
	p := rowsProbe{make(chan probe.PeriodRow)}
	a := &agent{Config: Config{
		Log: slog.New(slog.DiscardHandler), Rules: policy.Rules{Flight: policy.DefaultFlight()},
		Env:    apply.Env{FS: cgroupmodel.New(cgroupmodel.V1("0-3")), StateDir: t.TempDir(), BootID: "this"},
		Flight: Flight{Probe: p, Record: record, Dir: t.TempDir()},
	}}
	a.recorder = newRecorder(a)
	return a, p
}

func stoppedFor(id uint64, name string, share float64) observe.Observation {
	d := time.Duration(share * float64(time.Second))
	return observe.Observation{
		Container: container.Container{Name: name, Group: cgroup.Group{Path: "/" + name}}, CgroupID: id,
		Window: time.Second, StoppedLow: &d, StoppedHigh: &d,
	}
}

func TestRowsOfKnownContainersAreKept(t *testing.T) {
	a, p := flightAgent(t, nil)
	a.recorder.round(observe.Snapshot{Observations: []observe.Observation{stoppedFor(7, "web", 0)}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.recorder.keepPeriods(ctx) }()
	now := time.Now()
	base := monotonic(t)
	for i := range 10 {
		for _, id := range []uint64{7, 8} {
			p.rows <- probe.PeriodRow{Cgroup: id, EndNS: base + uint64(i)*1e8, LengthNS: 1e8, MeanWidth: 1,
				MostWidth: 3, StoppedShare: 0.5, Throttled: true}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := a.recorder.periods.Periods(flightrecorder.Key{ID: 7, Boot: "this"}, now.Add(-time.Minute), now.Add(time.Minute))
	if len(got) != 10 || got[9].Flags != flightrecorder.Throttled || got[9].End.Sub(now).Abs() > 5*time.Second {
		t.Errorf("%d rows, the last %+v at %v", len(got), got[len(got)-1], now)
	}
	if a.recorder.periods.Periods(flightrecorder.Key{ID: 8, Boot: "this"}, now.Add(-time.Minute), now.Add(time.Minute)) != nil {
		t.Error("rows of a container that no round named")
	}
	if err := a.recorder.flush(ctx); err != nil { // ctx has ended: the last flush
		t.Fatal(err)
	}
	if back, err := flightrecorder.Load(a.Flight.Dir); err != nil || len(back.Containers()) != 1 || back.Containers()[0].Name != "web" {
		t.Errorf("on disk: %v", err)
	}
}

// A row that has idle time before it is kept as a period of the quota, and the time before as none.
func TestIdleTimeBeforeAPeriod(t *testing.T) {
	a, p := flightAgent(t, nil)
	seen := stoppedFor(7, "web", 0)
	seen.Levels = []cgroup.Level{{Limit: cgroup.Limit{Quota: 1e8, Period: 100 * time.Millisecond}}}
	a.recorder.round(observe.Snapshot{Observations: []observe.Observation{seen}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.recorder.keepPeriods(ctx) }()
	now := time.Now()
	p.rows <- probe.PeriodRow{Cgroup: 7, EndNS: monotonic(t), LengthNS: 1e10, MeanWidth: 0.01, MostWidth: 3, StoppedShare: 0.009}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := a.recorder.periods.Periods(flightrecorder.Key{ID: 7, Boot: "this"}, now.Add(-time.Minute), now.Add(time.Minute))
	if last := got[len(got)-1]; last.Length > 101*time.Millisecond || last.Stopped < 0.85 {
		t.Errorf("%+v", last)
	}
}

// The fleet's rows have what other limits would have done, from the same rows per period.
func TestRowsPerPeriodAreExported(t *testing.T) {
	a, p := flightAgent(t, nil)
	dir, noon := t.TempDir(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a.Rules.Export.Dir, a.Rules.Export.Node = dir, "n1"
	if err := a.export(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.recorder.keepPeriods(ctx) }()
	p.rows <- probe.PeriodRow{Cgroup: 99, LengthNS: 1e8} // from here on it feeds
	for i := range 3 {
		o := stoppedFor(7, "web", 0)
		o.Start = noon.Add(time.Duration(i) * time.Second)
		o.Levels = []cgroup.Level{{Path: "/web", Limit: cgroup.Limit{Quota: 1e8, Period: 1e8}}}
		a.sink.Round([]observe.Observation{o})
		p.rows <- probe.PeriodRow{Cgroup: 7, LengthNS: 1e9, MeanWidth: 0.15, MostWidth: 3}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := a.sink.Close(nil); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Read(filepath.Join(dir, "cluster=unknown", "date=2026-11-25", "hour=12", "n1.parquet"))
	if err != nil || len(rows) != 1 || rows[0].CandidateSeconds == nil || *rows[0].CandidateSeconds != 2 || len(rows[0].Candidates) == 0 {
		t.Errorf("%v: %+v", err, rows)
	}
}

// What the agent's own recordings tell is in the row of their slot; one that cannot be explained adds nothing, and is told.
func TestRecordingsAreExported(t *testing.T) {
	a, _ := flightAgent(t, func(_ context.Context, _ container.Container, w io.Writer) error {
		_, err := io.WriteString(w, "events")
		return err
	})
	var log strings.Builder
	a.Log = slog.New(slog.NewTextHandler(&log, nil))
	dir, noon := t.TempDir(), time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a.Rules.Export.Dir, a.Rules.Export.Node = dir, "n1"
	if err := a.export(); err != nil {
		t.Fatal(err)
	}
	a.Flight.Explain = func(context.Context, string) (diagnose.Explanation, error) {
		return diagnose.Explanation{Window: RecordFor,
			Requests: &recorded.Requests{Seen: true, Count: 30, Lengths: []stats.Length{{UpTo: 98_304 * time.Microsecond, Count: 30}}},
			Pools: []diagnose.PoolUse{{Name: "http",
				Response: &diagnose.Quantiles{Lengths: []stats.Length{{UpTo: 3072 * time.Microsecond, Count: 30}}}},
				{Name: "never", Size: 3}}}, nil
	}
	o := stoppedFor(7, "web", 0)
	o.Start = noon
	a.sink.Round([]observe.Observation{o})
	a.recorder.recordOne(t.Context(), dueRecording{o.Container, 7, false})
	a.Flight.Explain = func(context.Context, string) (diagnose.Explanation, error) {
		return diagnose.Explanation{}, errors.New("no events")
	}
	a.recorder.recordOne(t.Context(), dueRecording{o.Container, 7, false})
	if _, err := a.sink.Close(nil); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Read(filepath.Join(dir, "cluster=unknown", "date=2026-11-25", "hour=12", "n1.parquet"))
	if err != nil || len(rows) != 1 || rows[0].RecordedSeconds == nil || *rows[0].RecordedSeconds != 10 ||
		*rows[0].RequestCount != 30 || len(rows[0].Requests) != 1 || len(rows[0].Pools) != 1 || rows[0].Pools[0].Threads != 3 ||
		len(rows[0].Responses) != 1 || rows[0].Responses[0] != (demand.Response{Role: "http", Microseconds: 3072, Count: 30}) {
		t.Errorf("%v: %+v", err, rows)
	}
	if !strings.Contains(log.String(), "no events") {
		t.Errorf("a recording that adds nothing is not told:\n%s", log.String())
	}
}

func monotonic(t *testing.T) uint64 {
	t.Helper()
	return uint64(time.Until(wall(0)).Abs())
}

func TestTheWorstAboveTheBoundIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorded atomic.Pointer[string]
		count := 0
		a, _ := flightAgent(t, func(_ context.Context, c container.Container, w io.Writer) error {
			count++
			recorded.Store(&c.Name)
			_, err := io.WriteString(w, "events")
			return err
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- a.recorder.record(ctx) }()
		synctest.Wait()
		calm := stoppedFor(1, "calm", 0.05)
		unsure := stoppedFor(9, "unsure", 0)
		unsure.StoppedHigh = new(time.Second)
		a.recorder.round(observe.Snapshot{Observations: []observe.Observation{calm, unsure}})
		synctest.Wait()
		if count != 0 {
			t.Fatal("recorded what may never have stood still")
		}
		both := observe.Snapshot{Observations: []observe.Observation{calm, stoppedFor(2, "bad", 0.2), stoppedFor(3, "worst", 0.6)}}
		for range 3 {
			a.recorder.round(both)
			synctest.Wait()
		}
		if count != 1 || *recorded.Load() != "worst" {
			t.Fatalf("%d recordings, the last of %s", count, *recorded.Load())
		}
		entries, err := a.recorder.store.List()
		if err != nil || len(entries) != 1 || entries[0].ID != 3 {
			t.Errorf("%+v %v", entries, err)
		}
		time.Sleep(recordAgain + time.Second)
		a.recorder.round(both)
		synctest.Wait()
		if count != 2 {
			t.Errorf("%d recordings after %v", count, recordAgain)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRecordingsPerHourAreBounded(t *testing.T) {
	a, _ := flightAgent(t, nil)
	now := time.Now()
	made := 0
	for i := range 100 {
		if a.recorder.mayRecord(uint64(i+1), now.Add(time.Duration(i)*30*time.Second)) {
			made++
		}
	}
	if made != recordsPerHour {
		t.Errorf("%d recordings in 50 minutes", made)
	}
	if !a.recorder.mayRecord(1000, now.Add(2*time.Hour)) {
		t.Error("none two hours later")
	}
}

func TestAFailedRecordingIsCountedAndLeavesNothing(t *testing.T) {
	a, _ := flightAgent(t, func(context.Context, container.Container, io.Writer) error { return errors.New("the ring is gone") })
	a.recorder.recordOne(t.Context(), dueRecording{container.Container{Name: "x"}, 5, false})
	if entries, _ := a.recorder.store.List(); len(entries) != 0 || a.recorder.failures != 1 {
		t.Errorf("%v, %v failures", entries, a.recorder.failures)
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(flightFigures{a})
	if got := testutil.CollectAndCount(reg); got != 7 {
		t.Errorf("%d metrics", got)
	}
}

func TestWidthsAreHistogramsOfTime(t *testing.T) {
	var sums totals
	o := stoppedFor(1, "web", 0.5)
	o.Width = []time.Duration{300 * time.Millisecond, 0, 500 * time.Millisecond, 200 * time.Millisecond}
	o.Wanted = append(make([]time.Duration, 300), time.Second)
	sums.add([]observe.Observation{o}, 0)
	sums.add([]observe.Observation{o}, 0)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(&sums)
	want := `
# HELP unthrottle_container_width_cpus CPUs in use at once; each millisecond is one observation.
# TYPE unthrottle_container_width_cpus histogram
`
	line := func(le string, n string) string {
		return `unthrottle_container_width_cpus_bucket{container="web",id="/web",namespace="",pod="",le="` + le + `"} ` + n + "\n"
	}
	want += line("0", "600") + line("1", "600") + line("2", "1600")
	for _, le := range []string{"3", "4", "6", "8", "12", "16", "24", "32", "48", "64", "96", "128", "192", "256", "+Inf"} {
		want += line(le, "2000")
	}
	want += `unthrottle_container_width_cpus_sum{container="web",id="/web",namespace="",pod=""} 3200
unthrottle_container_width_cpus_count{container="web",id="/web",namespace="",pod=""} 2000
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "unthrottle_container_width_cpus"); err != nil {
		t.Error(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "unthrottle_container_wanted_threads" {
			h := f.Metric[0].Histogram
			if h.GetSampleCount() != 2000 || h.GetSampleSum() != 300*2000 || h.Bucket[len(widthBuckets)-1].GetCumulativeCount() != 0 {
				t.Errorf("wanted: %v", h)
			}
			return
		}
	}
	t.Error("wanted is not exported")
}
