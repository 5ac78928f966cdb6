package rules

import (
	"math"
	"testing"
	"time"
)

// even are buckets of one size, in which VPA's own tests are written.
type even struct {
	size float64
	n    int
}

func (e even) count() int               { return e.n }
func (e even) of(value float64) int     { return max(0, min(int(value/e.size), e.n-1)) }
func (e even) start(bucket int) float64 { return float64(bucket) * e.size }

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want)) }

// TestHistogram has the cases of histogram_test.go and decaying_histogram_test.go.
func TestHistogram(t *testing.T) {
	type sample struct {
		value, weight float64
		at            time.Duration
	}
	same := []sample{{1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {4, 4, 0}}
	apart := []sample{{1, 1, 0}, {2, 2, time.Hour}, {3, 3, 2 * time.Hour}, {4, 4, 3 * time.Hour}}
	for _, c := range []struct {
		name    string
		samples []sample
		want    map[float64]float64
	}{
		{"empty", nil, map[float64]float64{-0.5: 0, 0: 0, 1: 0, 1.5: 0}},
		{"at one time", same, map[float64]float64{0: 2, 0.1: 2, 0.2: 3, 0.3: 3, 0.4: 4, 0.5: 4, 0.6: 4, 0.7: 5, 0.9: 5, 1: 5}},
		{"a half-life apart", apart,
			map[float64]float64{0: 2, 0.02: 2, 0.03: 3, 0.1: 3, 0.11: 4, 0.34: 4, 0.35: 5, 1: 5}},
		{"20 half-lives apart", []sample{{2, 1000, 0}, {1, 1, 20 * time.Hour}}, map[float64]float64{0.999: 2, 1: 3}},
		{"101 half-lives apart", []sample{{2, 1, 0}, {1, 1, 101 * time.Hour}}, map[float64]float64{1: 2}},
		{"then the first one is forgotten", []sample{{3, 1, 0}, {1, 1, 101 * time.Hour}}, map[float64]float64{1.1: 2}},
		{"and weighs no more", []sample{{2, 1, 0}, {1, 1, 101 * time.Hour}, {3, 1, 101 * time.Hour}}, map[float64]float64{0.5: 2}},
	} {
		h := newDecaying(even{1, 11}, time.Hour, 1e-15)
		for _, s := range c.samples {
			h.add(s.value, s.weight, s.at)
		}
		for q, want := range c.want {
			if got := h.percentile(q); !near(got, want) {
				t.Errorf("%s: percentile %v is %v, want %v", c.name, q, got, want)
			}
		}
	}
	tenths := newDecaying(even{0.1, 11}, time.Hour, 1e-15)
	tenths.add(0.0, 0.1, 0)
	tenths.add(1.0, 0.2, 0)
	if low, high := tenths.percentile(-0.1), tenths.percentile(1.1); !near(low, 0.1) || !near(high, 1) {
		t.Errorf("first and last bucket: %v, %v", low, high)
	}
}

// TestGrowingBuckets has the case of histogram_options_test.go.
func TestGrowingBuckets(t *testing.T) {
	g := newGrowing(500, 40, 1.5)
	if g.count() != 6 {
		t.Errorf("%d buckets", g.count())
	}
	for i, want := range []float64{0, 40, 100, 190, 325, 527.5} {
		if got := g.start(i); !near(got, want) {
			t.Errorf("bucket %d starts at %v, want %v", i, got, want)
		}
	}
	for value, want := range map[float64]int{-1: 0, 39.99: 0, 40: 1, 100: 2, 900: 5} {
		if got := g.of(value); got != want {
			t.Errorf("%v is in bucket %d, want %d", value, got, want)
		}
	}
}

// TestVPAEstimators has the cases of estimator_test.go and recommender_test.go.
func TestVPAEstimators(t *testing.T) {
	h := newDecaying(vpaBuckets(), vpaHalfLife, vpaLeastWeight)
	for _, v := range []float64{1, 2, 3} {
		h.add(v, 1, 0)
	}
	if got := h.percentile(0.2); math.Abs(got-1) > 0.05 {
		t.Errorf("percentile of 1, 2, 3: %v", got)
	}
	if got := vpaWithMargin(3140, 0.1); got != 3454 {
		t.Errorf("margin: %d", got)
	}
	nine := 8 * 2 * time.Minute // from the first of nine samples to the last
	if got := vpaConfidence(nine, 9, 24*time.Hour); got != 0.00625 {
		t.Errorf("confidence of nine samples in a day: %v", got)
	}
	if got := vpaConfidence(nine, 9, 18*time.Minute); got != 0.5 {
		t.Errorf("confidence of nine samples in 18 minutes: %v", got)
	}
	for _, c := range []struct {
		confidence, multiplier, exponent float64
		want                             int64
	}{{0.00625, 0.1, 2, 907460}, {0.5, 0.1, 2, 4521}, {0, 1, 1, 1e14}, {0, 1, -1, 0}} {
		if got := vpaWidened(3140, c.confidence, c.multiplier, c.exponent); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if r, ok := (VPA{}).Recommend([]Sample{{0, 0.001}}); !ok || r.Target != 25 || r.Lower != 25 {
		t.Errorf("least recommendation: %+v", r)
	}
	if _, ok := (VPA{}).Recommend(nil); ok {
		t.Error("a recommendation without a history")
	}
}

// TestVPAProportional has the cases of TestGetProportionalResourceLimitCPU without defaults of a namespace.
func TestVPAProportional(t *testing.T) {
	for _, c := range []struct {
		spec    Resources
		request int64
		want    int64
	}{
		{Resources{1, 2}, 10000, 20000},
		{Resources{1, 0}, 10000, 0},
		{Resources{0, 2}, 10000, 10000},
		{Resources{1, 2}, 0, 0},
		{Resources{1, 1}, 10000, 10000},
		{Resources{1.5, 2}, 1000, 1333},
	} {
		if got := proportional(c.spec, c.request); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestVPAUpdates has the cases of update_priority_calculator_test.go, with the default of 10 % instead of their 50 %.
func TestVPAUpdates(t *testing.T) {
	r := Recommendation{Target: 5000, Lower: 1000, Upper: 6000}
	for _, c := range []struct {
		request int64
		age     time.Duration
		want    bool
	}{
		{4600, 13 * time.Hour, false}, // 8.7 % off
		{1000, 13 * time.Hour, true},
		{8000, 13 * time.Hour, true},
		{4000, 11 * time.Hour, false},
		{1000, 11 * time.Hour, false},
		{10000, 11 * time.Hour, true},
		{0, 0, true},
	} {
		if got := vpaUpdates(c.request, r, c.age); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// aDay is a day of samples.
func aDay(step time.Duration, cpus func(at time.Duration) float64) (history []Sample) {
	for at := time.Duration(0); at < 24*time.Hour; at += step {
		history = append(history, Sample{at, cpus(at)})
	}
	return history
}

// TestVPAByDay: bounds by a day of history are those that recommender.go names, a factor of 2 above and none below.
func TestVPAByDay(t *testing.T) {
	history := aDay(time.Minute, func(at time.Duration) float64 {
		if at%(20*time.Minute) < 2*time.Minute+30*time.Second {
			return 1.5 // more than a tenth of the time
		}
		return 0.5
	})
	r, _ := (VPA{}).Recommend(history)
	if high := 1.15 * 1500.0; float64(r.Target) < high || float64(r.Target) > 1.06*high {
		t.Errorf("target %d, want %.0f and a bucket", r.Target, high)
	}
	if twice := 2 * float64(r.Target); math.Abs(float64(r.Upper)-twice) > 0.01*twice {
		t.Errorf("upper bound %d of target %d", r.Upper, r.Target)
	}
	if low := 1.15 * 500.0; float64(r.Lower) < 0.99*low || float64(r.Lower) > 1.06*low {
		t.Errorf("lower bound %d, want %.0f and a bucket", r.Lower, low)
	}
	spec := Resources{0.5, 1}
	s, _ := (VPA{}).Next(Observed{Spec: spec, Now: Setting{RequestCPUs: 0.5, Limit: quotaOf(100 * ms)}, History: history})
	if s.RequestCPUs != cpusOf(r.Target) || s.Limit != limitOf(2*r.Target) {
		t.Errorf("request %v, limit %+v of target %d", s.RequestCPUs, s.Limit, r.Target)
	}
	if again, _ := (VPA{}).Next(Observed{At: 13 * time.Hour, Spec: spec, Now: s, History: history}); again != s {
		t.Errorf("resized again: %+v", again)
	}
}

// TestVPAForgets: of a day, 14 % of the weight is left two days later and 7 % three days later.
func TestVPAForgets(t *testing.T) {
	for after, busy := range map[int]bool{2: true, 3: false} {
		var history []Sample
		for i := range (1 + after) * 24 * 60 {
			s := Sample{time.Duration(i) * time.Minute, 0.5}
			if i < 24*60 {
				s.CPUs = 2
			}
			history = append(history, s)
		}
		if r, _ := (VPA{}).Recommend(history); (r.Target > 2000) != busy {
			t.Errorf("%d days later: %+v", after, r)
		}
	}
}
