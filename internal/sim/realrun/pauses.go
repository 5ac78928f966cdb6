package realrun

import (
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// paused is the outcome of what stops others: so many pauses, and how long those took
// that were kept, in ms. A quantile is the least that a share of them do not exceed.
func paused(count int, ms []float64) scenario.WorkloadOutcome {
	out := scenario.WorkloadOutcome{Latencies: scenario.Latencies{Count: uint64(count)}}
	if len(ms) == 0 {
		return out
	}
	sorted := slices.Sorted(slices.Values(ms))
	at := func(q float64) *float64 {
		const rounding = 1e-9 // of the product
		return &sorted[max(1, int(math.Ceil(q*float64(len(sorted))-rounding)))-1]
	}
	out.P50, out.P90, out.P95, out.P99, out.Max = at(0.5), at(0.9), at(0.95), at(0.99), at(1)
	return out
}
