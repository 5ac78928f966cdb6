package main

import (
	"math"
	"testing"
	"time"
)

// A search ends, asks for no load twice, and finds the highest load that is met.
func TestKnee(t *testing.T) {
	var pieces []piece
	for v, best := range map[variant]float64{finagleInline: 0.3, finagleBudget: 0.9} {
		asked := map[float64]bool{}
		for {
			load, ok := nextLoad(pieces, v, 1)
			if !ok {
				break
			}
			if asked[load] {
				t.Fatalf("%s: %g again", v, load)
			}
			asked[load] = true
			p := piece{Part: partFinagle, Variant: v, Round: 1, Share: load, PingP99MS: 10, Works: 100, WorksDone: 100}
			if load > best {
				p.PingP99MS = kneeBoundMS + 1
			}
			pieces = append(pieces, p)
		}
		if met, missed := knee(pieces, v, 1); met != best || best == 0.9 && !math.IsInf(missed, 1) || best < 0.9 &&
			math.Abs(missed-best-0.1) > 1e-9 {
			t.Errorf("%s: %g met, %g missed, want %g", v, met, missed, best)
		}
	}
	if a, ok := kneeAim(pieces); !ok || math.Abs(a.Value-3) > 1e-9 || !a.Met {
		t.Errorf("aim %+v, %v", a, ok)
	}
	if _, ok := kneeAim(nil); ok {
		t.Error("an aim without a measurement")
	}
	if (piece{PingP99MS: 1, Works: 100, WorksDone: 94}).met() {
		t.Error("work that is not done counts as met")
	}
}

// Bursts make the share of the limit that is asked for, and requests are in order.
func TestKneeRequests(t *testing.T) {
	const d = 200 * time.Second
	works, last := 0, time.Duration(0)
	for _, q := range kneeRequests(d, 0.5, 1) {
		if q.At < last {
			t.Fatalf("%v after %v", q.At, last)
		}
		if last = q.At; q.Path != "/ping" {
			works++
		}
	}
	if share := float64(works) * kneeWork.Seconds() / d.Seconds() / kneeLimit; share < 0.45 || share > 0.55 {
		t.Errorf("%d works are %.2f of the limit, want 0.5", works, share)
	}
}
