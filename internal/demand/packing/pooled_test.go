package packing

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The figures are those of the package's worked example.
func TestPooled(t *testing.T) {
	r := NewRule(0.001)
	for _, c := range []struct {
		containers int
		want       float64
	}{{0, 0}, {1, 5}, {2, 9.41}, {10, 19.88}} {
		var p Pooled
		for range c.containers {
			r.Add(&p, bursty(1, 5, 0.01), 5)
		}
		if got := p.Wants(); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%d containers want %.3f CPUs, want %.2f", c.containers, got, c.want)
		}
	}
	if !Fits(4, 4) || Fits(4.001, 4) {
		t.Error("a host of 4 CPUs does not hold exactly 4")
	}
}

// A host holds what Make would put on it: Pooled is the same rule, one container at a time.
func TestPooledAsMake(t *testing.T) {
	fits, not := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r, cpus := NewRule(0.001), rapid.Float64Range(1, 60).Draw(t, "CPUs")
		var p Pooled
		var containers []Container
		for _, c := range rapid.SliceOfN(drawnDemand(), 1, 12).Draw(t, "containers") {
			r.Add(&p, c.demand, c.most)
			containers = append(containers, Container{On: 0, Demand: c.demand, MostCPUs: c.most})
		}
		over := Make(containers, []Host{{CPUs: cpus}}, Options{Risk: 0.001}).OverNow == 1
		if Fits(p.Wants(), cpus) == over {
			t.Fatalf("wants %v of %v CPUs, and Make says over: %v", p.Wants(), cpus, over)
		}
		if over {
			not++
		} else {
			fits++
		}
	})
	if fits == 0 || not == 0 {
		t.Errorf("%d hosts fit and %d do not: one side was never tried", fits, not)
	}
}

// One more container never makes the others want less, together with it.
func TestWantsWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRule(rapid.SampledFrom([]float64{0.0001, 0.001, 0.01}).Draw(t, "risk"))
		var p, one, all Pooled
		for _, c := range rapid.SliceOfN(drawnDemand(), 0, 8).Draw(t, "containers") {
			r.Add(&p, c.demand, c.most)
			r.Add(&all, c.demand, c.most)
		}
		c := drawnDemand().Draw(t, "more")
		r.Add(&one, c.demand, c.most)
		r.Add(&all, c.demand, c.most)
		with := r.WantsWith(&p, &one)
		if with < p.Wants() || with < one.Wants() || with < all.Wants() {
			t.Fatalf("together %v, without it %v, it alone %v, by the sums %v", with, p.Wants(), one.Wants(), all.Wants())
		}
	})
	// The sums of moments alone would tell less.
	r := NewRule(0.001)
	var p, more, all Pooled
	for range 5 {
		r.Add(&p, bursty(1, 41, 0.0005), 41)
		r.Add(&all, bursty(1, 41, 0.0005), 41)
	}
	for range 3 {
		r.Add(&more, bursty(1, 2, 0.5), 2)
		r.Add(&all, bursty(1, 2, 0.5), 2)
	}
	if without, with := p.Wants(), all.Wants(); with >= without || r.WantsWith(&p, &more) != without {
		t.Errorf("five rare bursts want %v, with three narrow containers %v by the sums and %v", without, with, r.WantsWith(&p, &more))
	}
}

// twoLevels is a container of two levels, other ones in each of three phases.
type twoLevels struct {
	demand []Moments
	most   float64
}

func drawnDemand() *rapid.Generator[twoLevels] {
	return rapid.Custom(func(t *rapid.T) (d twoLevels) {
		for range 3 {
			low := rapid.Float64Range(0, 4).Draw(t, "low")
			high := low + rapid.Float64Range(0, 40).Draw(t, "width")
			share := rapid.SampledFrom([]float64{0.00001, 0.0005, 0.01, 0.1, 0.5, 0.95}).Draw(t, "share")
			d.demand, d.most = slices.Concat(d.demand, bursty(low, high, share)), max(d.most, high)
		}
		return d
	})
}
