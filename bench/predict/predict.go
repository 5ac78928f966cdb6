// Package predict says what forecast makes of a recording of `bench service`'s plain quota, by the names of the remedies that
// the bench measures: at which load each of them misses the objective.
//
// Example: recorded at 320 requests per second, the quota misses the objective at 1.25 times that load and pin at 1.75 times.
// Pin is then predicted to carry 1.4 times the quota's load.
package predict

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
)

// Row is one remedy, by the bench's name.
type Row struct {
	Remedy string `json:"remedy"`
	// BreaksAt is the load, as a multiple of the recorded one, from which on the objective is missed; nil: at none that was
	// tried.
	BreaksAt *float64 `json:"breaks_at"`
	Modelled bool     `json:"modelled"`
}

// Loads between which a forecast looks for where a remedy breaks, as multiples of the recorded one.
const (
	From = 0.3
	To   = 4
)

// pools are the threads whose latency is a shape's objective. On the I/O threads of "mixed" short and long requests come by
// turns.
var pools = map[string]string{capacity.Shard: "http-worker", "pool": "http-worker", "pools": "http-worker", "gc": "http-worker"}

// Rows forecasts the remedies of a shape from a recording. o has what to forecast with; its objective is on the shape's
// pool. window is how long was recorded.
func Rows(recording []byte, shape string, o forecast.Options) (rows []Row, window time.Duration, err error) {
	prefix, ok := pools[shape]
	if !ok {
		return nil, 0, fmt.Errorf("short and long requests of %s run on the same threads, which a recording of threads cannot tell apart", shape)
	}
	l, err := forecast.Read(bytes.NewReader(recording))
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(l.Pools, func(p *forecast.Pool) bool { return strings.HasPrefix(p.Name, prefix) })
	if i < 0 {
		return nil, 0, fmt.Errorf("nothing of pool %s was recorded, only of %q", prefix, l.PoolNames())
	}
	o.Seed, o.From, o.To, o.Objective.Pool = 1, From, To, l.Pools[i].Name
	f, err := forecast.Make(l, o)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range f.Rows {
		if name := remedyOf(row.Remedy); name != "" && row.Refused == "" {
			// All pools, which the bench resizes, come after a single one.
			rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Remedy == name })
			rows = append(rows, Row{name, row.BreaksAt, row.Remedy.Modelled()})
		}
	}
	return rows, f.Window, nil
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
	case r.Name == forecast.Narrow && r.Credit > 0:
		return capacity.NarrowSchedExt
	case slices.Contains([]string{forecast.Weight, forecast.Pin, forecast.Pools}, r.Name):
		return r.Name // one name for a thing
	}
	return ""
}
