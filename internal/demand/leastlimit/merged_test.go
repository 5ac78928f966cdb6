package leastlimit

import (
	"math"
	"testing"
)

func TestMerged(t *testing.T) {
	for _, c := range []struct{ least, mean, containers, twice, want float64 }{
		{2, 1, 1, 1.5, 2},
		{2, 1, 2, 1.5, 3},
		{2, 0.1, 4, 1.5, 4.5},
		{2, 1, 0.5, 1.6, 1.25},
		{2, 1, 2, 2, 4},
		{2, 1.5, 2, 1.2, 3}, // the means of both
	} {
		if got := Merged(c.least, c.mean, c.containers, c.twice); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("Merged(%v, %v, %v, %v) = %v, want %v", c.least, c.mean, c.containers, c.twice, got, c.want)
		}
	}
}

func TestTwiceNeeds(t *testing.T) {
	for _, c := range []struct {
		name        string
		d           Demand
		least, most float64
	}{
		{"always as wide: twice as much", Demand{Wanted: []Level{{4, 1000}}, WidestMean: 4}, 2, 2},
		{"idle: nothing", Demand{}, 1, 1},
		{"a rare burst: two seldom meet", Demand{Wanted: []Level{{0, 9_000_000}, {4, 10_000}}, WidestMean: 0.01}, 1, 1.2},
		{"half of the time: they meet often", Demand{Wanted: []Level{{0, 1_000_000}, {4, 1_000_000}}, WidestMean: 2}, 1.9, 2},
	} {
		if got := c.d.TwiceNeeds(0.001); got < c.least || got > c.most {
			t.Errorf("%s: %v, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}
