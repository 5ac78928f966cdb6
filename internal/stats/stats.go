// Package stats has the few statistics that several packages share. It is a leaf.
//
// [Median] interpolates between the two middle values of an even number;
// [Rank] does not interpolate: it returns a value that was measured, as tables
// of latencies promise (nearest-rank method: the ceil(q n)-th smallest). [Ratios]
// compares pairs of measurements, with an interval. [Lengths] counts times in
// so few bins that they can be kept and added up.
//
// Worked example: of 1, 2, 3, 10 the median is 2.5, Rank 0.5 is 2 and Rank 0.99
// is 10.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Median is the middle of the values, which need not be sorted and are not
// changed. Of an even number it is the mean of the middle two; of none NaN.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Rank is the nearest-rank quantile q of values in ascending order: the
// ceil(q n)-th smallest, the first for q at or below 0 and the last for q at or
// above 1. It panics where there is no value.
func Rank[T cmp.Ordered](sorted []T, q float64) T { return sorted[RankOf(len(sorted), q)-1] }

// RankOf is which of n values in ascending order Rank is, from 1.
func RankOf(n int, q float64) int { return int(min(max(math.Ceil(q*float64(n)), 1), float64(n))) }

// Bucket is Rank of values that lie in buckets, in ascending order: the index of its bucket. count is how many are in each. -1: there is
// no value.
func Bucket[N int | int64 | uint32 | uint64](buckets int, count func(i int) N, q float64) int {
	sum, all := N(0), N(0)
	for i := range buckets {
		all += count(i)
	}
	last := -1
	for i := range buckets {
		if n := count(i); n > 0 {
			if last, sum = i, sum+n; float64(sum) >= q*float64(all) {
				break
			}
		}
	}
	return last
}

// Need is how many samples a quantile, 0 to 1, needs to be told: 5 beyond it, or 5 for the longest.
func Need(q float64) int {
	if q >= 1 {
		return 5
	}
	return int(math.Ceil(5/min(q, 1-q) - 1e-6))
}

// told are the quantiles that samples are judged by where they are too few for a higher one.
var told = []float64{0.99, 0.95, 0.9, 0.5}

// Tells returns the highest of p99, p95, p90 and p50 below a quantile that n samples tell; ok is false where they tell
// none.
func Tells(n int, below float64) (q float64, ok bool) {
	for _, q := range told {
		if q < below && n >= Need(q) {
			return q, true
		}
	}
	return 0, false
}

// LongestLook is for how long a container is looked at, at most, so that a quantile can be told.
const LongestLook = time.Minute

// Tellable is the highest quantile up to most that samples tell which come as fast as so many in a window, looked at
// for LongestLook; what the
// window itself tells counts too.
func Tellable(samples int, window time.Duration, most float64) float64 {
	if window <= 0 {
		return most
	}
	n := int(float64(samples) * math.Max(1, LongestLook.Seconds()/window.Seconds()))
	if n >= Need(most) {
		return most
	}
	if q, ok := Tells(n, most); ok {
		return q
	}
	return 0.5
}
