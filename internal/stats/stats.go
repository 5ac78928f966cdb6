// Package stats has the few statistics that several rooms share. It is a leaf.
//
// [Median] interpolates between the two middle values of an even number;
// [Rank] does not interpolate: it returns a value that was measured, as tables
// of latencies promise (nearest-rank method: the ceil(q n)-th smallest).
//
// Worked example: of 1, 2, 3, 10 the median is 2.5, Rank 0.5 is 2 and Rank 0.99
// is 10.
package stats

import (
	"cmp"
	"math"
	"slices"
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
func Rank[T cmp.Ordered](sorted []T, q float64) T {
	rank := math.Ceil(q * float64(len(sorted)))
	return sorted[int(min(max(rank, 1), float64(len(sorted))))-1]
}
