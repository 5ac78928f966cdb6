package main

import (
	"math"
	"testing"
	"time"
)

// A search ends, asks for no load twice, and finds the highest load that is met.
func TestKnee(t *testing.T) {
	var pieces []piece
	for v, best := range map[variant]float64{finagleInline: 0.3, finagleOffloaded: 0, finagleBudget: 0.9} {
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
		if met, missed := knee(pieces, ofBoth, v, 1); met != best || best == 0.9 && !math.IsInf(missed, 1) || best < 0.9 &&
			math.Abs(missed-best-0.1) > 1e-9 {
			t.Errorf("%s: %g met, %g missed, want %g", v, met, missed, best)
		}
	}
	for v, want := range map[variant]string{finagleInline: "30 %", finagleOffloaded: "below 10 %",
		finagleBudget: "at least 90 %, the highest of the grid"} {
		if got := kneeText(pieces, ofBoth, v, 1); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
	if aims := kneeAims(pieces); len(aims) != 2 || aims[0].Measured != "at least 3.00" || aims[1].Measured != "at least 9.00" ||
		!aims[0].Met {
		t.Errorf("aims %+v", aims)
	}
	if len(kneeAims(nil)) > 0 {
		t.Error("an aim without a measurement")
	}
	if (piece{PingP99MS: 1, Works: 100, WorksDone: 94}).kept(ofBoth) {
		t.Error("work that is not done counts as kept")
	}
}

// Pings within their bound are no load that is carried where work waits for seconds; what no load was measured for counts as missed.
func TestKneeBoundsWorkToo(t *testing.T) {
	at := func(v variant, round int, load, pings, works float64) piece {
		return piece{Part: partFinagle, Variant: v, Round: round, Share: load, PingP99MS: pings, WorkP99MS: works, Works: 1, WorksDone: 1}
	}
	pieces := []piece{at(finagleInline, 1, 0.3, 40, 60), at(finagleInline, 1, 0.4, 60, 90), at(finagleBudget, 1, 0.5, 5, 300),
		at(finagleBudget, 1, 0.7, 5, 1000)}
	if got := kneeText(pieces, ofPings, finagleBudget, 1); got != "at least 70 %, the highest of the grid" {
		t.Error(got)
	}
	if got := kneeText(pieces, ofBoth, finagleBudget, 1); got != "below 50 %" {
		t.Error(got)
	}
	if aims := kneeAims(pieces); len(aims) != 1 || aims[0].Measured != "at most 1.33" || aims[0].Met {
		t.Errorf("%+v", aims)
	}
	pieces = append(pieces, at(finagleInline, 2, 0.3, 40, 60), at(finagleInline, 2, 0.4, 60, 90), at(finagleBudget, 2, 0.5, 5, 200),
		at(finagleBudget, 2, 0.7, 5, 1000))
	if got := kneeText(pieces, ofBoth, finagleBudget, 2); got != "50 to 60 %" {
		t.Error(got)
	}
	if aims := kneeAims(pieces); len(aims) != 1 || aims[0].Measured != "at most 1.33; 1.67 to 2.00" || aims[0].Met {
		t.Errorf("%+v", aims)
	}
	if load, ok := nextLoad(pieces, finagleBudget, 2); !ok || load != 0.6 {
		t.Errorf("the next load is %g, %v", load, ok)
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
