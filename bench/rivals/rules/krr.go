package rules

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// KRR is Robusta's Kubernetes Resource Recommender with its strategy simple: the request becomes the 95th percentile of the
// use, and the limit goes. It is a command that a person runs, and reads no throttling.
//
// Its samples are 75 s apart. By default it takes two weeks of them; those of the hottest of several pods count.
//
// Source: robusta-dev/krr at d6baa74 and its README ("for CPU, we set a request at the 95th percentile with no limit"):
// robusta_krr/strategies/simple.py, robusta_krr/core/runner.py (rounding), robusta_krr/core/models/config.py (least value),
// robusta_krr/core/integrations/prometheus/metrics/cpu.py. The percentile is Prometheus' quantile_over_time.
type KRR struct{}

// Defaults of simple.py and config.py.
const (
	krrPercentile = 0.95 // cpu_percentile
	krrPoints     = 100  // points_required
	krrLeastMilli = 10   // cpu_min_value
)

// Cadence is 0: KRR recommends once.
func (KRR) Cadence() time.Duration { return 0 }

// Next leaves a container with too short a history as it is.
func (k KRR) Next(o Observed) (Setting, Rule) {
	s := o.Now
	if len(o.History) < krrPoints {
		return s, k
	}
	p95 := quantile(sorted(o.History), krrPercentile)
	s.RequestCPUs = max(math.Ceil(p95*1000)/1000, cpusOf(krrLeastMilli))
	s.Limit = bandwidth.Unlimited()
	return s, k
}

// sorted are the uses of samples in ascending order.
func sorted(samples []Sample) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = s.CPUs
	}
	slices.Sort(values)
	return values
}

// quantile is the quantile q of values in ascending order, interpolated between the two next to it; of none it is 0.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := q * float64(len(sorted)-1)
	low := int(rank)
	high := min(low+1, len(sorted)-1)
	return sorted[low]*(1-(rank-float64(low))) + sorted[high]*(rank-float64(low))
}
