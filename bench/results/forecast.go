package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// predicted has the forecasts of a shape's remedies, from one recording of the plain
// quota.
type predicted struct {
	Load   float64        `json:"load_rps"` // when it was recorded
	Window time.Duration  `json:"window_ns"`
	Rows   []predictedRow `json:"rows"`
}

// predictedRow is one remedy, by the bench's name.
type predictedRow struct {
	Remedy string `json:"remedy"`
	// BreaksAt is the load, as a multiple of the recorded one, from which on the
	// objective is missed; nil: at none that was tried.
	BreaksAt *float64 `json:"breaks_at"`
	Modelled bool     `json:"modelled"`
}

// row is a remedy's, nil where it is not known at which load it breaks.
func (f *predicted) row(remedy string) *predictedRow {
	if f == nil {
		return nil
	}
	if i := slices.IndexFunc(f.Rows, func(r predictedRow) bool { return r.Remedy == remedy }); i >= 0 && f.Rows[i].BreaksAt != nil {
		return &f.Rows[i]
	}
	return nil
}

// ratio is that of the loads at which a remedy and the plain quota break; false:
// not known.
func (f *predicted) ratio(remedy string) (r float64, modelled, ok bool) {
	quota, row := f.row(capacity.Quota), f.row(remedy)
	if quota == nil || row == nil {
		return 0, false, false
	}
	return *row.BreaksAt / *quota.BreaksAt, row.Modelled, true
}

// predictedPools are the thread pools whose latency is a shape's objective. On the
// I/O threads of "mixed" short and long requests come one after the other, and a
// recording of threads cannot tell them apart.
var predictedPools = map[string]string{"pool": "http-worker", "pools": "http-worker", "gc": "http-worker"}

// Loads between which forecasts look for where a remedy breaks, and their runs.
const (
	predictedFrom, predictedTo = 0.3, 4
	predictedSeeds             = 3
)

// recorder keeps a recording of the plain quota.
type recorder struct {
	host *cgroup.Host
	file bytes.Buffer
	load float64
	err  error // of the last try
}

// record is bench.Options.Record. A recording that fails does not lose the
// measurements.
func (r *recorder) record(ctx context.Context, of cgroup.Group, load float64, d time.Duration) error {
	r.file.Reset()
	r.load = load
	_, r.err = live.Live(ctx, live.Options{
		Host: r.host, Root: os.DirFS("/"), Target: container.Container{Group: of, Name: "service"}, For: d, Keep: &r.file,
	})
	return ctx.Err()
}

// predict forecasts a shape's remedies from a recording at a load.
func predict(recording []byte, load float64, of capacity.Result) (*predicted, error) {
	prefix, ok := predictedPools[of.Shape]
	if !ok {
		return nil, errors.New("its short and long requests run on the same threads, which a recording of threads cannot tell apart")
	}
	l, err := forecast.Read(bytes.NewReader(recording))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.Pools, func(p *forecast.Pool) bool { return strings.HasPrefix(p.Name, prefix) })
	if i < 0 {
		return nil, fmt.Errorf("nothing of pool %s was recorded, only of %q", prefix, l.PoolNames())
	}
	f, err := forecast.Make(l, forecast.Options{
		Seeds: predictedSeeds, Seed: 1, CPUs: of.Limit, From: predictedFrom, To: predictedTo,
		Objective: &forecast.Objective{Objective: objective.Objective{Quantile: of.Quantile, Bound: time.Duration(of.BoundMs * float64(time.Millisecond))}, Pool: l.Pools[i].Name},
	})
	if err != nil {
		return nil, err
	}
	out := &predicted{Load: load, Window: f.Window}
	for _, row := range f.Rows {
		name := armOf(row.Remedy)
		if name == "" || row.Refused != "" {
			continue
		}
		// All pools, which the bench resizes, come after a single one.
		out.Rows = slices.DeleteFunc(out.Rows, func(r predictedRow) bool { return r.Remedy == name })
		out.Rows = append(out.Rows, predictedRow{name, row.BreaksAt, row.Remedy.Modelled()})
	}
	return out, nil
}

// armOf is the bench's name of a remedy that it measures; "" for others.
func armOf(r forecast.Remedy) string {
	switch {
	case r.Name == forecast.None:
		return capacity.Quota
	case r.Name == forecast.Period && r.Period == capacity.ShortPeriod:
		return capacity.Period
	case r.Name == forecast.Raise && r.Factor == capacity.Raised:
		return capacity.Raise
	case r.Name == forecast.Burst && r.Period == 0: // with a shorter period it is a row of its own, which the bench has not
		return capacity.Burst
	case slices.Contains([]string{forecast.Weight, forecast.Pin, forecast.Pools}, r.Name):
		return r.Name // one name for a thing
	}
	return ""
}

// predict fills in what forecasts say of a part's shape, from its recording, or
// why they say nothing.
func (m *measured) predict(dir string) {
	m.Predicted, m.NotPredicted = nil, ""
	recording, err := os.ReadFile(recordedName(dir, m.Part))
	if err == nil {
		m.Predicted, err = predict(recording, m.Recorded, *m.Shape)
	}
	if err != nil {
		m.NotPredicted = err.Error()
	}
}

// predictAgain makes all forecasts again, with the simulator as it is now.
func predictAgain(dir, out string) error {
	all, err := kept(dir)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Shape == nil {
			continue
		}
		all[i].predict(dir)
		if err := study.Write(keptName(dir, all[i].Part), all[i]); err != nil {
			return err
		}
	}
	return study.WritePage(out, markdown(all))
}
