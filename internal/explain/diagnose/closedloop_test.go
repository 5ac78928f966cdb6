package diagnose

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// answered are the cycles of a server whose responses take mean ns, times 0.5 to 1.5, and of clients that ask next after a
// gap that the response does or does not move.
func answered(chance *rand.Rand, n int, mean float64, next func(took float64) (gap float64)) []cycle {
	all := make([]cycle, n)
	for i := range all {
		took := mean * (0.5 + chance.Float64())
		all[i] = cycle{int64(took), int64(max(1, next(took)))}
	}
	return all
}

// Clients that wait are told from those that ask at random times and those that ask by a clock, whatever the time unit,
// the order of the cycles, and the seldom stop.
func TestClosedLoop(t *testing.T) {
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 1))
		mean := math.Exp(chance.Float64()*9) * 5000 // 5 us to 40 ms
		jitter := func() float64 { return 0.9 + 0.2*chance.Float64() }
		for name, c := range map[string]struct {
			next func(took float64) float64
			want bool
		}{
			"closed, at once":            {func(float64) float64 { return 0.3 * mean * jitter() }, true},
			"closed, as long again":      {func(float64) float64 { return mean * jitter() }, true},
			"closed, a long think time":  {func(float64) float64 { return 20 * mean * jitter() }, false}, // a faster answer brings no more
			"open, at random times":      {func(float64) float64 { return mean * chance.ExpFloat64() }, false},
			"open, by a clock":           {func(took float64) float64 { return 2*mean*(0.99+0.02*chance.Float64()) - took }, false},
			"open, by a seldom clock":    {func(took float64) float64 { return 9*mean - took }, false},
			"open, most of the time up":  {func(took float64) float64 { return 1.6*mean*jitter() - took }, false},
			"open, random and saturated": {func(float64) float64 { return 0.1 * mean * chance.ExpFloat64() }, false},
		} {
			all := answered(chance, 400, mean, c.next)
			for i := range 4 { // stops
				all[100*i].took += int64(100 * mean)
			}
			gap, closed := closedLoop(all)
			if closed != c.want {
				t.Errorf("seed %d, %s: closed %v", seed, name, closed)
			}
			if sorted := slices.SortedFunc(slices.Values(all), func(x, y cycle) int { return int(x.gap - y.gap) }); closed {
				if again, still := closedLoop(sorted); again != gap || !still {
					t.Errorf("seed %d, %s: in another order %v, %v", seed, name, again, still)
				}
			}
			if _, few := closedLoop(all[:leastCycles-1]); few {
				t.Errorf("seed %d, %s: %d cycles tell", seed, name, leastCycles-1)
			}
		}
	}
}

// The cycles that are kept are spread over the recording, and bounded.
func TestCyclesAreBounded(t *testing.T) {
	var s cycles
	for i := range int64(100_000) {
		s.add(cycle{i, 1})
	}
	if n := len(s.kept); n >= maxCycles || n < maxCycles/4 {
		t.Fatalf("%d kept", n)
	}
	for i := range s.kept[1:] {
		if d := s.kept[i+1].took - s.kept[i].took; d < 1 || d > 2*int64(s.every) {
			t.Fatalf("%d after %d: every %d", s.kept[i+1].took, s.kept[i].took, s.every)
		}
	}
	if last := s.kept[len(s.kept)-1].took; last < 90_000 {
		t.Errorf("the last is %d", last)
	}
}
