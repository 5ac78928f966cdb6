package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
)

// When the chooser finds a container, by how it is stopped in each round, at a bound of 5 %.
func TestStoppedRounds(t *testing.T) {
	every := func(n int, share float64) func(int) float64 {
		return func(i int) float64 {
			if i%n == 0 {
				return share
			}
			return 0
		}
	}
	for name, c := range map[string]struct {
		share func(round int) float64
		first int // the round in which it is found; -1: in none of 200
	}{
		"always":                               {every(1, 0.5), 4},
		"always, just above the bound":         {every(1, 0.06), 4},
		"in four of five seconds":              {func(i int) float64 { return 0.5 - every(5, 0.5)(i) }, 6},
		"hard, in each third second":           {every(3, 0.4), 12},
		"hard, in each sixth second":           {every(6, 0.4), 24},
		"above in each third, not in the mean": {every(3, 0.06), -1},
		"one slow second in ten":               {every(10, 0.9), -1},
		"never":                                {every(1, 0), -1},
	} {
		rules := rules(nil)
		rules.Bound = 0.05
		chosen, found := newChooser(rules, ""), -1
		for i := range 200 {
			at := start.Add(time.Duration(i) * time.Second)
			if len(chosen.round([]observe.Observation{seen("/a", c.share(i))}, nil, at)) > 0 {
				found = i
				break
			}
		}
		if found != c.first {
			t.Errorf("%s: found in round %d, want %d", name, found, c.first)
		}
	}
}

// Nothing is kept of a container that was not stopped for long, and of one that is gone.
func TestStoppedRoundsAreForgotten(t *testing.T) {
	c := newChooser(rules(nil), "")
	c.round([]observe.Observation{seen("/a", 0.5), seen("/b", 0.5)}, nil, start)
	for i := range persistWithin {
		if got := len(c.stopped); i < persistWithin-1 && i > 0 && got != 1 {
			t.Fatalf("after %d calm rounds of /a, without /b: %d are remembered", i, got)
		}
		c.round([]observe.Observation{seen("/a", 0)}, nil, start.Add(time.Duration(i+1)*time.Second))
	}
	if len(c.stopped) != 0 {
		t.Errorf("%d are remembered", len(c.stopped))
	}
	if got := (stoppedRounds{}).with(0.5, true); !got.seen() || got.persistent(0) || !slices.Contains(got.shares[:], 0.5) {
		t.Errorf("%+v", got)
	}
}
