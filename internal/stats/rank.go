package stats

import (
	"cmp"
	"math"
	"slices"
)

// RankCorrelation is Spearman's: how far y rises with x, from -1 to 1, by ranks; equal values share the mean of their ranks. NaN:
// there are fewer than two pairs, or all x or all y are equal. It panics if there are not as many y as x.
//
// Source: C. Spearman, The Proof and Measurement of Association between Two Things (1904).
func RankCorrelation(x, y []float64) float64 {
	if len(x) != len(y) {
		panic("stats: RankCorrelation of unequal numbers")
	}
	a, b := ranks(x), ranks(y)
	mean := float64(len(x)-1) / 2
	var ab, aa, bb float64
	for i := range a {
		da, db := a[i]-mean, b[i]-mean
		ab, aa, bb = ab+da*db, aa+da*da, bb+db*db
	}
	if aa == 0 || bb == 0 {
		return math.NaN()
	}
	return ab / math.Sqrt(aa*bb)
}

// ranks are those of values, from 0.
func ranks(of []float64) []float64 {
	order := make([]int, len(of))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(of[i], of[j]) })
	ranks := make([]float64, len(of))
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) && of[order[last+1]] == of[order[first]] {
			last++
		}
		for _, i := range order[first : last+1] {
			ranks[i] = float64(first+last) / 2
		}
		first = last + 1
	}
	return ranks
}
