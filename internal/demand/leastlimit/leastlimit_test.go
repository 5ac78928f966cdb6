package leastlimit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/sim/simulate/coarse"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// The worked example of the package.
func TestLeast(t *testing.T) {
	steady := []Level{{CPUs: 0, Microseconds: 89_990_000}, {CPUs: 1, Microseconds: 10_000_000}, {CPUs: 4, Microseconds: 10_000}}
	piled := []Level{{CPUs: 1, Microseconds: 10_000_000}, {CPUs: 50, Microseconds: 10_000_000}}
	for _, c := range []struct {
		name   string
		demand Demand
		bound  float64
		want   Needs
	}{
		// 10 ms at 4 may be stopped for 10.01 s * bound / (1 - bound).
		{"never stopped", Demand{Wanted: steady, WidestMean: 0.1004}, 0.001, Needs{0.1004, 4 / (1 + 10.01/999/0.01), 4}},
		{"stopped: what waits behind the quota is not its width",
			Demand{Width: steady, Wanted: piled, WidestMean: 0.1004, StoppedSeconds: 3}, 0.001, Needs{0.1004, 4 / (1 + 10.01/999/0.01), 4}},
		{"more threads than it has CPUs", Demand{Wanted: piled, WidestMean: 1.5, AllowedCPUs: 2}, 1e-9, Needs{1.5, 2, 2}},
		{"a mean above the levels", Demand{Wanted: []Level{{CPUs: 1, Microseconds: 1_000_000}}, WidestMean: 1.01}, 0.001, Needs{1, 1, 1}},
		{"idle", Demand{Wanted: []Level{{CPUs: 0, Microseconds: 1_000_000}}}, 0.001, Needs{}},
		{"nothing is known", Demand{}, 0.001, Needs{}},
	} {
		got := c.demand.Least(c.bound)
		if !near(got.Low, c.want.Low) || math.Abs(got.Safe-c.want.Safe) > 1e-6*4 || !near(got.High, c.want.High) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Whatever the order of a demand, the period model stops it for no longer than StoppedAt says, and what Least calls
// safe holds.
func TestNoOrderIsWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.Int32Range(1, 32).Draw(t, "width")
		period := 100 * time.Millisecond.Nanoseconds()
		work := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) int64 {
			if rapid.Bool().Draw(t, "idle") {
				return 0
			}
			return rapid.Int64Range(0, int64(width)*period).Draw(t, "work") / 1000 * 1000
		}), 1, 200).Draw(t, "periods")
		widths, us, total := make([]int32, len(work)), int64(0), int64(0)
		for i, w := range work {
			widths[i], us, total = width, us+(w+int64(width)*1000-1)/(int64(width)*1000), total+w
		}
		d := Demand{Wanted: []Level{{CPUs: width, Microseconds: us}}, WidestMean: float64(total) / float64(int64(len(work))*period)}
		limit := rapid.Float64Range(0.05, 32).Draw(t, "limit")
		stops := func(limitCPUs float64) float64 {
			return float64(coarse.Run(&coarse.Limit{QuotaNS: int64(limitCPUs * float64(period)), PeriodNS: period},
				work, widths).StoppedNS) / 1e9
		}
		const rounding = 1e-3 // of microseconds and nanoseconds, over 200 periods
		if got, most := stops(limit), d.StoppedAt(limit); got > most+rounding {
			t.Fatalf("limit %.3f: stopped for %.6f s, at most %.6f s", limit, got, most)
		}
		bound := rapid.Float64Range(1e-4, 0.2).Draw(t, "bound")
		n := d.Least(bound)
		if n.Low > n.Safe+1e-9 || n.Safe > n.High+1e-9 {
			t.Fatalf("no interval: %+v", n)
		}
		if busy := d.BusySeconds(); busy > 0 {
			if got := stops(n.Safe); got > (busy+got)*bound+rounding {
				t.Fatalf("%.3f CPUs are called safe: stopped for %.6f s of %.6f", n.Safe, got, busy)
			}
			if got := stops(n.High); got > rounding {
				t.Fatalf("%.3f CPUs stop it for %.6f s", n.High, got)
			}
		}
	})
}

func TestRounding(t *testing.T) {
	for _, c := range []struct{ cpus, tenths, whole float64 }{{0, 0, 0}, {0.01, 0.1, 1}, {0.3, 0.3, 1},
		{2.0000000001, 2, 2}, {2.11, 2.2, 3}} {
		if !near(Tenths(c.cpus), c.tenths) || Whole(c.cpus) != c.whole {
			t.Errorf("%v: %v, %v", c.cpus, Tenths(c.cpus), Whole(c.cpus))
		}
	}
}
