package stats

import (
	"math"
	"slices"
	"testing"
)

func TestRankCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{1, 10, 100, 1000}, 1}, // by ranks: not on a line
		{[]float64{1, 2, 3, 4}, []float64{8, 6, 3, 1}, -1},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8}, // 1 - 6*4/(5*24)
		{[]float64{1, 1, 2, 2}, []float64{1, 2, 1, 2}, 0},
		{[]float64{1, 1, 2}, []float64{5, 5, 9}, 1},
		{[]float64{3, 3}, []float64{1, 2}, math.NaN()},
		{[]float64{1}, []float64{1}, math.NaN()},
		{nil, nil, math.NaN()},
	} {
		x := slices.Clone(c.x)
		got := RankCorrelation(c.x, c.y)
		if math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
		if !slices.Equal(x, c.x) {
			t.Errorf("%v was changed to %v", x, c.x)
		}
	}
}
