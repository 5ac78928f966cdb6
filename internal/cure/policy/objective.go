package policy

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
)

// quantiles are the ones that can be judged, by name.
var quantiles = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1}

// maxBound is the longest bound that makes sense: the latency source itself is
// ended after 30 s.
const maxBound = 30 * time.Second

// ParseObjective reads "p99<20ms", as package objective does. Of percentiles it takes p50, p90, p95, p99, p99.9 and max
// only, and bounds up to 30 s.
func ParseObjective(s string) (objective.Objective, error) {
	o, err := objective.Parse(s)
	if err != nil {
		return objective.Objective{}, fmt.Errorf("slo %w", err)
	}
	name := objective.Percentile(o.Quantile)
	q, ok := quantiles[name]
	switch {
	case !ok:
		return objective.Objective{}, fmt.Errorf("slo %.60q: the percentile is none of p50, p90, p95, p99, p99.9, "+
			"max: write it as p99<20ms", s)
	case o.Bound > maxBound:
		return objective.Objective{}, fmt.Errorf("slo %.60q: the bound is not within 1us to 30s: write it as p99<20ms", s)
	}
	return objective.Objective{Quantile: q, Bound: o.Bound}, nil
}
