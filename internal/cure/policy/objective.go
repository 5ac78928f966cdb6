package policy

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
)

// Objective is a bound on a quantile of the user's own latency.
type Objective struct {
	// Quantile is 0 to 1; 1 is the longest.
	Quantile float64
	Bound    time.Duration
}

// quantiles are the ones that can be judged, by name.
var quantiles = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1}

// maxBound is the longest bound that makes sense: the latency source itself is
// ended after 30 s.
const maxBound = 30 * time.Second

// ParseObjective reads "p99<20ms", as package objective does. Of percentiles it takes p50, p90, p95, p99, p99.9 and max
// only, and bounds up to 30 s.
func ParseObjective(s string) (Objective, error) {
	o, err := objective.Parse(s)
	if err != nil {
		return Objective{}, fmt.Errorf("slo %w", err)
	}
	name := objective.Percentile(o.Quantile)
	q, ok := quantiles[name]
	switch {
	case !ok:
		return Objective{}, fmt.Errorf("slo %.60q: the percentile is none of p50, p90, p95, p99, p99.9, max: write it as p99<20ms", s)
	case o.Bound > maxBound:
		return Objective{}, fmt.Errorf("slo %.60q: the bound is not within 1us to 30s: write it as p99<20ms", s)
	}
	return Objective{q, o.Bound}, nil
}

// String is what ParseObjective reads; "" for the zero value.
func (o Objective) String() string {
	if o == (Objective{}) {
		return ""
	}
	return objective.Objective(o).String()
}

// Met tells whether a quantile in ms keeps the bound.
func (o Objective) Met(ms float64) bool { return ms < float64(o.Bound)/float64(time.Millisecond) }
