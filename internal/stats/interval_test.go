package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestRatios(t *testing.T) {
	// The example of experiment/capacity.
	r, ok := Ratios([]float64{610, 615, 600, 620, 590}, []float64{410, 400, 420, 390, 405}, 0)
	if !ok || math.Abs(r.Mean-1.5) > 0.005 || math.Abs(r.Low-1.42) > 0.01 || math.Abs(r.High-1.58) > 0.01 {
		t.Errorf("%+v", r)
	}
	if _, ok := Ratios([]float64{1, 0}, []float64{1, 1}, 0); ok {
		t.Error("an interval of one pair")
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.Float64Range(1, 1000), 2, 30).Draw(t, "a")
		r, ok := Ratios(a, a, 0)
		if !ok || math.Abs(r.Mean-1) > 1e-9 || r.Low > r.Mean || r.High < r.Mean {
			t.Fatalf("a sample against itself: %+v", r)
		}
	})
}

func TestStudentT(t *testing.T) {
	last := math.Inf(1)
	for n := 1; n < 200; n++ {
		if v := studentT(n); v >= last || v < 1.96 {
			t.Errorf("t of %d is %v after %v", n, v, last)
		} else {
			last = v
		}
	}
}
