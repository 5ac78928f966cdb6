package rules

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// TestQuantile has the cases of Prometheus for quantile_over_time (promql/promqltest/testdata/functions.test), and those of
// Attune's TestComputePercentiles and TestPercentile_ExactBoundary.
func TestQuantile(t *testing.T) {
	eleven := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{[]float64{0, 1}, 0, 0}, {[]float64{0, 1}, 0.5, 0.5}, {[]float64{0, 1}, 0.75, 0.75}, {[]float64{0, 1}, 0.8, 0.8},
		{[]float64{0, 1}, 1, 1},
		{[]float64{0, 1, 2}, 0.5, 1}, {[]float64{0, 1, 2}, 0.75, 1.5}, {[]float64{0, 1, 2}, 0.8, 1.6}, {[]float64{0, 1, 2}, 1, 2},
		{[]float64{0, 1, 4}, 0.5, 1}, {[]float64{0, 1, 4}, 0.75, 2.5}, {[]float64{0, 1, 4}, 0.8, 2.8}, {[]float64{0, 1, 4}, 1, 4},
		{nil, 0.95, 0}, {[]float64{42}, 0.95, 42}, {[]float64{10, 20}, 0.95, 19.5}, {[]float64{1, 2, 3, 4, 5}, 0.9, 4.6},
		{[]float64{1, 2, 3, 4, 5}, 0.95, 4.8}, {[]float64{7, 7, 7, 7}, 0.99, 7}, {eleven, 0.5, 5}, {eleven, 1, 10}, {eleven, 0, 0},
	} {
		if got := quantile(c.values, c.q); !near(got, c.want) {
			t.Errorf("%v of %v: %v, want %v", c.q, c.values, got, c.want)
		}
	}
}

// TestKRR: the 95th percentile and no limit, as the README says, in whole thousandths, at least ten, of 100 points or more.
func TestKRR(t *testing.T) {
	now := Setting{RequestCPUs: 1, Limit: quotaOf(200 * ms), ExclusiveCPUs: 1}
	for _, c := range []struct {
		points int
		cpus   func(i int) float64
		want   float64
	}{
		{101, func(i int) float64 { return float64(i) / 100 }, 0.95},
		{100, func(int) float64 { return 0.2001 }, 0.201},
		{100, func(int) float64 { return 0.001 }, 0.01},
		{99, func(int) float64 { return 0.5 }, 1},
	} {
		var history []Sample
		for i := range c.points {
			history = append(history, Sample{time.Duration(i) * 75 * time.Second, c.cpus(i)})
		}
		s, _ := KRR{}.Next(Observed{Now: now, History: history})
		want := now
		if want.RequestCPUs = c.want; c.points >= 100 {
			want.Limit.Quota = bandwidth.NoQuota
		}
		if s != want {
			t.Errorf("%d points: %+v, want %+v", c.points, s, want)
		}
	}
}
