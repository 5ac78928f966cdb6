package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// forecasts are what forecast says of a recording of the plain quota.
type forecasts struct {
	Load float64       `json:"load_rps"` // when it was recorded
	Rows []forecastRow `json:"rows"`
	// Why there are none.
	Why string `json:"why,omitempty"`
}

// forecastRow is one remedy, by the bench's name.
type forecastRow struct {
	Remedy string `json:"remedy"`
	// BreaksAt is the load, as a multiple of the recorded one, from which on the objective is missed; nil: at none that was tried.
	BreaksAt *float64 `json:"breaks_at"`
}

// pools are the threads whose requests the objective is on. Those of "mixed" serve long and short requests by turns.
var pools = map[string]string{capacity.Shard: "http-worker", "pool": "http-worker", "pools": "http-worker", "gc": "http-worker"}

// Loads between which a forecast looks for where a remedy breaks, as multiples of the recorded one, and its runs.
const (
	foreFrom, foreTo = 0.3, 4
	foreSeeds        = 2
)

// forecastOf forecasts the remedies from a recording.
func forecastOf(p piece, file []byte, load float64) *forecasts {
	f := &forecasts{Load: load}
	rows, err := rowsOf(p, file)
	if err != nil {
		f.Why = err.Error()
	}
	f.Rows = rows
	return f
}

func rowsOf(p piece, file []byte) ([]forecastRow, error) {
	prefix, ok := pools[p.Shape]
	if !ok {
		return nil, fmt.Errorf("short and long requests of %s run on the same threads, which a recording cannot tell apart", p.Shape)
	}
	l, err := forecast.Read(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.Pools, func(p *forecast.Pool) bool { return strings.HasPrefix(p.Name, prefix) })
	if i < 0 {
		return nil, fmt.Errorf("nothing of pool %s was recorded, only of %q", prefix, l.PoolNames())
	}
	made, err := forecast.Make(l, forecast.Options{
		Seeds: foreSeeds, Seed: 1, CPUs: p.Limit, SchedExt: true, From: foreFrom, To: foreTo,
		Objective: &forecast.Objective{Objective: objective.Objective{Quantile: 0.99, Bound: boundMs * time.Millisecond}, Pool: l.Pools[i].Name},
	})
	if err != nil {
		return nil, err
	}
	var rows []forecastRow
	for _, row := range made.Rows {
		if name := remedyOf(row.Remedy); name != "" && row.Refused == "" {
			rows = slices.DeleteFunc(rows, func(r forecastRow) bool { return r.Remedy == name }) // all pools come after a single one
			rows = append(rows, forecastRow{name, row.BreaksAt})
		}
	}
	return rows, nil
}

// remedyOf is the bench's name of a forecast row; "" for others.
func remedyOf(r forecast.Remedy) string {
	switch {
	case r.Name == forecast.None:
		return capacity.Quota
	case r.Name == forecast.Period && r.Period == capacity.ShortPeriod:
		return capacity.Period
	case r.Name == forecast.Burst && r.Period == 0:
		return capacity.Burst
	case r.Name == forecast.Narrow && r.Credit > 0:
		return capacity.NarrowSchedExt
	case r.Name == forecast.Pin, r.Name == forecast.Pools:
		return r.Name
	}
	return ""
}
