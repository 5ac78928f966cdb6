package forecast

import (
	"math"
	"strings"
	"testing"
)

// heldOutOf makes a workload with the given predicted and real p99 of each remedy. The first real run of each
// is the recording.
func heldOutOf(draw uint64, remedies string, predicted []float64, came ...[]float64) heldOut {
	h := heldOut{Draw: draw, Pool: "p"}
	for i, name := range strings.Fields(remedies) {
		own := func() *Range { return &Range{predicted[i] * 0.9, predicted[i] * 1.1} }
		row := heldOutRow{Remedy: name, Predicted: heldOutFigures{P99: predicted[i]},
			Own: Error{P50: own(), P99: own(), Max: own(), ThrottledPeriods: own(), Stopped: own()}}
		for _, p99 := range came[i] {
			row.Came = append(row.Came, heldOutFigures{P50: p99, P99: p99, Max: p99, Throttled: p99, Stopped: p99})
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

func TestJudgeHeldOut(t *testing.T) {
	drawn := []heldOut{
		// The forecast of weight is right, that of raise has the wrong sign, and burst makes no difference
		// above the noise.
		heldOutOf(1, "none weight raise burst", []float64{100, 10, 120, 130}, []float64{100, 110, 90},
			[]float64{10, 11, 12}, []float64{50, 51, 52}, []float64{95, 100, 118}),
		// One run of each: nothing is above the noise. Pin is best, and within the noise as good as none.
		heldOutOf(2, "none pin", []float64{20, 30}, []float64{21}, []float64{20}),
		// The forecast sees no difference, but there is one.
		heldOutOf(3, "none weight", []float64{10, 10}, []float64{10, 10}, []float64{5, 5}),
	}
	v := judgeHeldOut(drawn)
	if want := (count{1, 3}); v.sign != want {
		t.Errorf("sign %v, want %v", v.sign, want)
	}
	// In the third, the forecast names none, which takes twice as long as the best.
	if want := (count{2, 3}); v.named != want {
		t.Errorf("named %v, want %v", v.named, want)
	}
	if want := (count{4, 8}); v.within != want {
		t.Errorf("within %v, want %v", v.within, want)
	}
	if v.covered.of != 3*4+2+4 || v.agree.of != 3*4+2 {
		t.Errorf("covered %v, agree %v", v.covered, v.agree)
	}
	page := heldOutMarkdown(drawn, "6.18", count{1, 20})
	for _, want := range []string{"1 of 3 (33 %)", "1 of 20 (5 %)"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// Runs of the same requests agree, but their p99 says little if few requests are above it.
func TestFewRequestsAreNoise(t *testing.T) {
	h := heldOutOf(1, "none pin", []float64{50, 25}, []float64{20, 20}, []float64{32, 32})
	if v := judgeHeldOut([]heldOut{h}); v.sign != (count{0, 1}) {
		t.Errorf("sign %v", v.sign)
	}
	for i := range h.Rows[0].Came {
		h.Rows[0].Came[i].Sampled = &Range{18, 50}
	}
	if v := judgeHeldOut([]heldOut{h}); v.sign != (count{}) {
		t.Errorf("sign %v, and the p99 of none may be 50", v.sign)
	}
}

// With the calibration as many runs are within the errors as Coverage promises, whether forecasts expect too
// much of themselves or too little.
func TestCalibrate(t *testing.T) {
	for _, width := range []float64{0.05, 1, 3} {
		var drawn []heldOut
		for i := range 100 {
			drawn = append(drawn, heldOutOf(uint64(i), "none", []float64{100}, []float64{100 * math.Exp(width*(float64(i)-49.5)/50)}))
		}
		off := calibrate(drawn)["none"]
		if off.N != 100 {
			t.Fatalf("%+v", off)
		}
		within := count{}
		for i := range drawn {
			row := &drawn[i].Rows[0]
			r := row.Own.P99.scaled(off.P99, row.Predicted.P99)
			within.add(row.Came[0].P99 >= r.Low && row.Came[0].P99 <= r.High)
		}
		if within.n < 88 || within.n > 93 {
			t.Errorf("off by up to a factor of %.2f: %v within the error", math.Exp(width), within)
		}
	}
}
