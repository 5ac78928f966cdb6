package rules

import (
	"math"
	"time"
)

// VPA is the Vertical Pod Autoscaler with its defaults: the request becomes what was used 90 % of the time, and 15 % more; the
// limit stays as many times the request as its owner wrote. It resizes a container whose request is outside the bounds, and
// one that is twelve hours old if the request is off by a tenth.
//
// Its samples are a minute apart.
//
// Source: kubernetes/autoscaler, vertical-pod-autoscaler 1.7.1: pkg/recommender/{logic/recommender,logic/estimator,
// util/histogram,util/decaying_histogram,model/aggregations_config}.go, pkg/updater/priority/{update_priority_calculator,
// priority_processor}.go, pkg/utils/vpa/limit_and_request_scaling.go; defaults in docs/flags.md.
type VPA struct{}

// Defaults of docs/flags.md, and constants of aggregations_config.go.
const (
	vpaTarget      = 0.9               // target-cpu-percentile
	vpaLower       = 0.5               // recommendation-lower-bound-cpu-percentile
	vpaUpper       = 0.95              // recommendation-upper-bound-cpu-percentile
	vpaMargin      = 0.15              // recommendation-margin-fraction
	vpaLeastMilli  = 25                // pod-recommendation-min-cpu-millicores
	vpaConfident   = 24 * time.Hour    // confidence-interval-cpu
	vpaHalfLife    = 24 * time.Hour    // cpu-histogram-decay-half-life
	vpaInterval    = time.Minute       // recommender-interval, updater-interval
	vpaLifetime    = 12 * time.Hour    // in-recommendation-bounds-eviction-lifetime-threshold
	vpaChange      = 0.1               // pod-update-threshold
	vpaWeight      = 0.1               // of a sample
	vpaLeastWeight = 0.001 * vpaWeight // of a bucket
	vpaMostMilli   = 1e14              // of any amount
)

// vpaBuckets are 0.01 CPUs wide at first, and each 5 % wider than the one before.
func vpaBuckets() buckets { return newGrowing(1000, 0.01, 1.05) }

// Recommendation is what VPA finds, in thousandths of a CPU.
type Recommendation struct{ Target, Lower, Upper int64 }

// Recommend is the recommendation after a history; false: there is none.
func (VPA) Recommend(history []Sample) (Recommendation, bool) {
	if len(history) == 0 {
		return Recommendation{}, false
	}
	h := newDecaying(vpaBuckets(), vpaHalfLife, vpaLeastWeight)
	for _, s := range history {
		h.add(s.CPUs, vpaWeight, s.At)
	}
	life := history[len(history)-1].At - history[0].At
	confidence := vpaConfidence(life, len(history), vpaConfident)
	size := func(q float64) int64 { return vpaWithMargin(vpaAmount(h.percentile(q)*1000), vpaMargin) }
	return Recommendation{
		Target: max(vpaLeastMilli, size(vpaTarget)),
		Lower:  max(vpaLeastMilli, vpaWidened(size(vpaLower), confidence, 0.001, -2)),
		Upper:  max(vpaLeastMilli, vpaWidened(size(vpaUpper), confidence, 1, 1)),
	}, true
}

// vpaAmount is an amount in whole thousandths, cut off as its type does.
func vpaAmount(milli float64) int64 { return int64(max(0, min(milli, vpaMostMilli))) }

// vpaWithMargin adds a share of the amount.
func vpaWithMargin(milli int64, share float64) int64 { return milli + vpaAmount(float64(milli)*share) }

// vpaConfidence is for how many intervals there is history: by time, or by samples of which one a minute is enough.
func vpaConfidence(life time.Duration, samples int, interval time.Duration) float64 {
	return min(float64(life)/float64(interval), float64(samples)/interval.Minutes())
}

// vpaWidened moves a bound away from the target by how little history there is.
func vpaWidened(milli int64, confidence, multiplier, exponent float64) int64 {
	return vpaAmount(float64(milli) * math.Pow(1+multiplier/confidence, exponent))
}

// vpaUpdates tells whether the updater resizes a container of that age.
func vpaUpdates(requestMilli int64, r Recommendation, age time.Duration) bool {
	if requestMilli == 0 || requestMilli < r.Lower || requestMilli > r.Upper {
		return true
	}
	return age >= vpaLifetime && math.Abs(float64(requestMilli-r.Target))/float64(max(requestMilli, 1)) >= vpaChange
}

// proportional is the limit in thousandths that is to the request as the owner's limit is to the owner's request; 0: there is
// none. A limit without a request counts as one with an equal request.
func proportional(spec Resources, requestMilli int64) int64 {
	limit, request := milli(spec.LimitCPUs), milli(spec.RequestCPUs)
	switch {
	case limit == 0 || requestMilli == 0:
		return 0
	case request == 0 || request == limit:
		return requestMilli
	}
	return limit * requestMilli / request
}

// Cadence is that of the recommender and of the updater.
func (VPA) Cadence() time.Duration { return vpaInterval }

// Next resizes the container, or leaves it as it is.
func (v VPA) Next(o Observed) (Setting, Rule) {
	s := o.Now
	r, ok := v.Recommend(o.History)
	if !ok || !vpaUpdates(milli(s.RequestCPUs), r, o.At) {
		return s, v
	}
	s.RequestCPUs = cpusOf(r.Target)
	s.Limit = limitOf(proportional(o.Spec, r.Target))
	return s, v
}
