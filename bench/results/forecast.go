package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/predict"
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
	Load   float64       `json:"load_rps"` // when it was recorded
	Window time.Duration `json:"window_ns"`
	Rows   []predict.Row `json:"rows"`
}

// row is a remedy's, nil where it is not known at which load it breaks.
func (f *predicted) row(remedy string) *predict.Row {
	if f == nil {
		return nil
	}
	if i := slices.IndexFunc(f.Rows, func(r predict.Row) bool { return r.Remedy == remedy }); i >= 0 && f.Rows[i].BreaksAt != nil {
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

// predictedSeeds is how many runs a forecast is the median of.
const predictedSeeds = 3

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

// predictedOf forecasts a shape's remedies from a recording at a load.
func predictedOf(recording []byte, load float64, of capacity.Result) (*predicted, error) {
	rows, window, err := predict.Rows(recording, of.Shape, forecast.Options{
		Seeds: predictedSeeds, CPUs: of.Limit,
		Objective: &forecast.Objective{Objective: objective.Objective{Quantile: of.Quantile, Bound: time.Duration(of.BoundMs * float64(time.Millisecond))}},
	})
	if err != nil {
		return nil, err
	}
	return &predicted{Load: load, Window: window, Rows: rows}, nil
}

// predict fills in what forecasts say of a part's shape, from its recording, or
// why they say nothing.
func (m *measured) predict(dir string) {
	m.Predicted, m.NotPredicted = nil, ""
	recording, err := os.ReadFile(recordedName(dir, m.Part))
	if err == nil {
		m.Predicted, err = predictedOf(recording, m.Recorded, *m.Shape)
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
