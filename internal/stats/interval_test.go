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

// Any table of the distribution has these.
func TestStudentT(t *testing.T) {
	for _, c := range []struct {
		probability float64
		freedom     int
		want        float64
	}{{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 14, 2.145}, {0.95, 5, 2.015}, {0.995, 4, 4.604},
		{0.9995, 8, 5.041}, {0.975, 120, 1.980}, {0.9995, 3, 12.924}} {
		if got := StudentT(c.probability, c.freedom); math.Abs(got-c.want) > 0.001 {
			t.Errorf("StudentT(%v, %d) = %.4f, want %v", c.probability, c.freedom, got, c.want)
		}
	}
}
