package remedy

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFractionOdds(t *testing.T) {
	for _, tc := range []struct {
		own      int
		fraction float64
		room     int
		levels   int
		want     float64
	}{
		{1, 0.75, 1, 1, 7},          // 1.75 CPUs to 0.25
		{3, 0.75, 1, 1, 15},         // 3.75 to 0.25
		{1, 0.25, 1, 1, 1.25 / .75}, // more than 1 to 1, which would give nothing
		{2, 0.5, 2, 1, 2.5 / 1.5},
		{2, 0.5, 30, 1, 2.5 / 29.5},
		{1, 0.62, 1, 2, 9}, // 0.9 of 0.9 of two CPUs
	} {
		if got := fractionOdds(tc.own, tc.fraction, tc.room, tc.levels); math.Abs(got-tc.want) > 1e-9*tc.want {
			t.Errorf("%+v: %g", tc, got)
		}
	}
}

// What the odds promise is what the weights reach, on every nesting; and as
// many CPUs as the weight of all gives each CPU the same load.
func TestFractionOddsReachTheFraction(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		own, room, levels := 1+chance.IntN(64), 1+chance.IntN(64), 1+chance.IntN(4)
		fraction := 0.01 + 0.98*chance.Float64()
		odds := fractionOdds(own, fraction, room, levels)
		var contests []contest
		for range levels {
			others := 2 + 1e5*chance.Float64()
			contests = append(contests, contest{odds * others, others})
		}
		if got := fractionReached(own, room, contests); math.Abs(got-fraction) > 1e-6 {
			t.Fatalf("own %d, room %d, levels %d: odds %g reach %g, want %g", own, room, levels, odds, got, fraction)
		}
		if more := fractionOdds(own, fraction+0.005, room, levels); more <= odds {
			t.Fatalf("own %d, room %d: a larger fraction has the odds %g, not above %g", own, room, more, odds)
		}
		if least := fractionOdds(own, 0, room, 1); math.Abs(least-float64(own)/float64(room)) > 1e-9*least {
			t.Fatalf("own %d, room %d: nothing has the odds %g", own, room, least)
		}
	}
}

func TestFractionReachedIsNeverNegative(t *testing.T) {
	if got := fractionReached(3, 1, []contest{{1024, 1024}}); got != 0 {
		t.Errorf("3 own CPUs with the others' weight reach %g of the shared one, want 0", got)
	}
}
