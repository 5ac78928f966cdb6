package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{10, 1, 3, 2}, 2.5}, {[]float64{9, 1, 5}, 5}} {
		before := slices.Clone(c.of)
		if got := Median(c.of); got != c.want {
			t.Errorf("of %v: %v, want %v", c.of, got, c.want)
		}
		if !slices.Equal(before, c.of) {
			t.Errorf("the values were changed to %v", c.of)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestRank(t *testing.T) {
	sorted := []int{1, 2, 3, 10}
	for q, want := range map[float64]int{-1: 1, 0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.75: 3, 0.99: 10, 1: 10, 2: 10} {
		if got := Rank(sorted, q); got != want {
			t.Errorf("rank %v: %d, want %d", q, got, want)
		}
	}
}

// At least a part q of all values is at or below the quantile q, and less than
// that is below it.
func TestRankSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := slices.Sorted(slices.Values(rapid.SliceOfN(rapid.IntRange(0, 9), 1, 50).Draw(t, "values")))
		q := rapid.Float64Range(0.001, 1).Draw(t, "q")
		at, below, upTo := Rank(sorted, q), 0, 0
		for _, v := range sorted {
			if v < at {
				below++
			}
			if v <= at {
				upTo++
			}
		}
		if n := q * float64(len(sorted)); float64(upTo) < n-1e-9 || float64(below) >= n+1e-9 {
			t.Fatalf("%d below and %d up to %d, of %d at %v", below, upTo, at, len(sorted), q)
		}
	})
}

// Bucket is Rank of the same values.
func TestBucket(t *testing.T) {
	counts := []int{0, 3, 0, 1, 4, 0}
	var values []int
	for i, n := range counts {
		values = append(values, slices.Repeat([]int{i}, n)...)
	}
	for _, q := range []float64{-1, 0, 0.1, 0.375, 0.38, 0.5, 0.99, 1, 2} {
		if got, want := Bucket(len(counts), func(i int) int { return counts[i] }, q), Rank(values, q); got != want {
			t.Errorf("quantile %g: bucket %d, want %d", q, got, want)
		}
	}
	if got := Bucket(3, func(int) uint64 { return 0 }, 0.5); got != -1 {
		t.Errorf("of nothing: bucket %d", got)
	}
}
