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

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// predicted has the forecasts of a shape's remedies, from one recording of the plain quota.
type predicted struct {
	Rows []predictedRow `json:"rows"`
}

// predictedRow is one remedy, by the bench's name.
type predictedRow struct {
	Remedy string `json:"remedy"`
	// BreaksAt is the load, as a multiple of the recorded one, from which on the objective is missed; nil: at none that was
	// tried.
	BreaksAt *float64 `json:"breaks_at"`
}

// breaksAt is where a remedy breaks; nil: that is not known.
func (f *predicted) breaksAt(remedy string) *float64 {
	if i := slices.IndexFunc(f.Rows, func(r predictedRow) bool { return r.Remedy == remedy }); i >= 0 {
		return f.Rows[i].BreaksAt
	}
	return nil
}

// ratio is that of the loads at which a remedy and the plain quota break: recorded at 320 requests per second, the quota misses the
// objective at 1.25 times that load and pin at 1.75 times. Pin is then predicted to carry 1.4 times the quota's load. Nil: not known.
func (f *predicted) ratio(remedy string) *float64 {
	if f == nil {
		return nil
	}
	quota, row := f.breaksAt(capacity.Quota), f.breaksAt(remedy)
	if quota == nil || row == nil {
		return nil
	}
	return new(*row / *quota)
}

// recorder keeps a recording of the plain quota.
type recorder struct {
	host *cgroup.Host
	file bytes.Buffer
	err  error // of the last try
}

// record is bench.Options.Record. A recording that fails does not lose the
// measurements.
func (r *recorder) record(ctx context.Context, group cgroup.Group, _ float64, d time.Duration) error {
	r.file.Reset()
	_, r.err = live.Live(ctx, live.Options{
		Host: r.host, Root: os.DirFS("/"), Target: container.Container{Group: group, Name: "service"}, For: d, Keep: &r.file,
	})
	return ctx.Err()
}

// pools are the threads whose latency is a shape's objective. On the I/O threads of "mixed" short and long requests come by
// turns.
var pools = map[string]string{"pool": "http-worker", "pools": "http-worker", "gc": "http-worker"}

// forecast forecasts a shape's remedies from what was recorded.
func (r *recorder) forecast(result capacity.Result) (*predicted, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.file.Len() == 0 {
		return nil, errors.New("the plain quota met its objective at no load, so that nothing was recorded")
	}
	prefix, ok := pools[result.Shape]
	if !ok {
		return nil, fmt.Errorf("short and long requests of %s run on the same threads, which a recording of threads "+
			"cannot tell apart", result.Shape)
	}
	l, err := forecast.Read(&r.file)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.Pools, func(p *forecast.Pool) bool { return strings.HasPrefix(p.Name, prefix) })
	if i < 0 {
		return nil, fmt.Errorf("nothing of pool %s was recorded, only of %q", prefix, l.PoolNames())
	}
	const seeds, from, to = 3, 0.3, 4 // runs that it is the median of, and multiples of the recorded load that are tried
	f, err := forecast.Make(l, forecast.Options{
		Seed: 1, Seeds: seeds, CPUs: result.Limit, From: from, To: to,
		Objective: &forecast.Objective{Pool: l.Pools[i].Name,
			Objective: objective.Objective{Quantile: result.Quantile, Bound: time.Duration(result.BoundMs * float64(time.Millisecond))}},
	})
	if err != nil {
		return nil, err
	}
	p := &predicted{}
	for _, row := range f.Rows {
		if name := remedyOf(row.Remedy); name != "" && row.Refused == "" {
			// All pools, which the bench resizes, come after a single one.
			p.Rows = slices.DeleteFunc(p.Rows, func(r predictedRow) bool { return r.Remedy == name })
			p.Rows = append(p.Rows, predictedRow{name, row.BreaksAt})
		}
	}
	return p, nil
}

// remedyOf is the bench's name of a row that it measures; "" for others.
func remedyOf(r forecast.Remedy) string {
	switch {
	case r.Name == forecast.None:
		return capacity.Quota
	case r.Name == forecast.Period && r.Period == capacity.ShortPeriod:
		return capacity.Period
	case r.Name == forecast.Raise && r.Factor == capacity.Raised:
		return capacity.Raise
	case r.Name == forecast.Burst && r.Period == 0: // with a shorter period it is a row of its own, which the bench has not
		return capacity.Burst
	case r.Name == forecast.Burst && r.Period == bandwidth.MaxPeriod:
		return capacity.Burst1s
	case slices.Contains([]string{forecast.Weight, forecast.Pin, forecast.Pools}, r.Name):
		return r.Name // one name for a thing
	}
	return ""
}
