package agreement

import (
	"math"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

func TestPlausible(t *testing.T) {
	d := draw(t, 23)
	seeds := []scenario.Outcome{outcome(450, 0.480, 0.30, 20, 60), outcome(480, 0.500, 0.44, 20, 84), outcome(500, 0.510, 0.50, 21, 100)}
	for name, c := range map[string]struct {
		real   scenario.Outcome
		misses int
	}{
		"a seed has it":       {outcome(450, 0.480, 0.30, 20, 60), 0},
		"within the bounds":   {outcome(466, 0.491, 0.41, 23, 96), 0},
		"below all":           {outcome(430, 0.470, 0.20, 10, 40), 5},
		"above all":           {outcome(500, 0.520, 0.51, 30, 101), 4},
		"nothing was counted": {scenario.Outcome{Seconds: 10, Cgroups: seeds[0].Cgroups}, 2},
	} {
		misses := 0
		for _, v := range Plausible(d, seeds, c.real) {
			if !v.Agrees {
				misses++
			}
		}
		if misses != c.misses {
			t.Errorf("%s: %d misses", name, misses)
		}
	}
}

func TestBias(t *testing.T) {
	use := func(simulated, real float64) Verdict {
		return Verdict{Key: Key{Use, "a"}, Simulated: simulated, Real: []float64{real}}
	}
	verdicts := []Verdict{use(0.5, 0.55), use(1, 1.1), use(0.2, 0.2), use(0, 0.1), {Key: Key{P50, "a"}, Simulated: 10, Real: []float64{90}}}
	if got := Bias(verdicts); math.Abs(got-0.1) > 1e-9 {
		t.Error(got)
	}
	if got := Bias(nil); !math.IsNaN(got) {
		t.Errorf("%v of nothing", got)
	}
}
