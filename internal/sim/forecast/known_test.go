package forecast

import (
	"math"
	"testing"
)

// What is shown as the interval of a row holds seven of ten results of services that had no part in it, by the
// comparisons in the tree: each service
// is left out once, and judged by the others.
func TestShownIntervalsHoldOnServicesLeftOut(t *testing.T) {
	pairs := FirstMet()
	inside, n := 0, 0
	for _, c := range pairs {
		var others []Compared
		for _, o := range pairs {
			if o.Service != c.Service {
				others = append(others, o)
			}
		}
		r := KnownOf(others, Remedy{Name: c.Remedy}).widened(Range{c.LowMs, c.HighMs})
		if n++; c.CameMs >= r.Low && c.CameMs <= r.High {
			inside++
		}
	}
	if n == 0 || float64(inside) < Shown*float64(n) {
		t.Errorf("%d of %d are inside, want %.0f %%", inside, n, 100*Shown)
	}
	t.Logf("%d of %d are inside", inside, n)
}

func TestKnownOf(t *testing.T) {
	pairs := []Compared{}
	add := func(remedy string, forecast float64, came ...float64) {
		for _, ms := range came {
			pairs = append(pairs, Compared{Remedy: remedy, ForecastMs: forecast, LowMs: forecast / 2,
				HighMs: forecast * 2, CameMs: ms})
		}
	}
	add(None, 100, 100, 110, 120, 90, 100, 100, 100, 300)
	add(Burst, 50, 50, 45, 10, 10, 10, 10, 10, 10, 200)
	add(Narrow, 50, 40)
	for _, c := range []struct {
		remedy     string
		close, all int
		rare       bool
		low, high  float64 // of an interval of 1 to 1
	}{
		{None, 7, 8, false, 1, 1.5},
		{Burst, 2, 9, true, 0.4, 2},
		{Narrow, 3, 10, true, 0.4, 1}, // too few of its own: all remedies
	} {
		k := KnownOf(pairs, Remedy{Name: c.remedy})
		r := k.widened(Range{1, 1})
		if k.Close != c.close || k.All != c.all || k.Rare() != c.rare || math.Abs(r.Low-c.low) > 1e-9 || math.Abs(r.High-c.high) > 1e-9 {
			t.Errorf("%s: %+v, %+v, rare %v", c.remedy, k, r, k.Rare())
		}
	}
	if k := KnownOf(nil, Remedy{Name: Burst}); !k.Rare() || k.All != 0 {
		t.Errorf("of nothing: %+v", k)
	}
	for _, c := range FirstMet() {
		if !(c.ForecastMs > 0 && c.CameMs > 0 && c.LowMs > 0 && c.LowMs <= c.HighMs) || c.Service == "" || c.Remedy == "" {
			t.Errorf("%+v", c)
		}
	}
}
