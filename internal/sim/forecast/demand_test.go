package forecast

import (
	"testing"
	"time"

	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

const demandPeriod = 100 * time.Millisecond

// wanted is a demand's CPU time, its widest period, and how many periods have work.
func wanted(t *testing.T, demands []Demand) (work time.Duration, widest, busy int) {
	t.Helper()
	for _, d := range demands {
		work, widest = work+d.Work, max(widest, d.Width)
		if d.Work > 0 {
			busy++
		}
		if d.Work < 0 || d.Work > time.Duration(d.Width)*demandPeriod {
			t.Errorf("%v on %d CPUs", d.Work, d.Width)
		}
	}
	return work, widest, busy
}

// 8 threads of 8 ms every 250 ms, on 2 CPUs with a neighbour on one of them, and within a limit that holds them back:
// without all that they are
// 8 wide, and done in the period in which they came or in the next one.
func TestDemandIsNotOfTheHost(t *testing.T) {
	s := rt.New(2).Limit(50*ms, 100*ms).Process("java")
	w := s.Threads("http-worker", 8)
	s.Repeat(8, 250*ms, func(at time.Duration) { s.Work(at, 8*ms, w...) })
	s.Occupy(0, time.Second, 1, s.Neighbour("other", "/other", nil, nil))
	l := loadOf(t, s.Run(2*time.Second))
	for seed := range uint64(8) {
		got, err := l.Demand(32, demandPeriod, seed)
		if err != nil {
			t.Fatal(err)
		}
		work, widest, busy := wanted(t, got)
		// Up to one burst is in the part of a period at the beginning or end.
		if len(got) < 19 || len(got) > 20 || work < 7*64*ms || work > 8*64*ms || widest != 8 || busy < 7 || busy > 16 {
			t.Errorf("seed %d: %d periods, %v, at most %d wide, work in %d", seed, len(got), work, widest, busy)
		}
	}
	again, _ := l.Demand(32, demandPeriod, 0)
	if first, _ := l.Demand(32, demandPeriod, 0); len(first) != len(again) || first[1] != again[1] {
		t.Error("a seed is no demand")
	}
	for _, cpus := range []int{0, 1, 1025} {
		if _, err := l.Demand(cpus, demandPeriod, 1); err == nil {
			t.Errorf("%d CPUs are taken", cpus)
		}
	}
}
