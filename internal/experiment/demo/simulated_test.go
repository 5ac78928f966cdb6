package demo

import (
	"reflect"
	"strings"
	"testing"
)

func TestSimulatedShowsWhatSeed003Saw(t *testing.T) {
	r, err := Simulated(0)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Simulated || r.Restored || len(r.Verdict.Text) == 0 {
		t.Errorf("%+v", r)
	}
	if b := r.Before; *b.ThrottledPeriods*100 < *b.Periods*93 || *b.P50 < 90 || *b.P50 > 120 {
		t.Errorf("quota: %d of %d periods throttled, p50 %v ms", *b.ThrottledPeriods, *b.Periods, *b.P50)
	}
	if a := r.After; a.ThrottledPeriods != nil || *a.P50 > 15 || !r.Verdict.SameCPU || *r.Verdict.P99Ratio < 5 {
		t.Errorf("pin: p50 %v ms, verdict %+v", *a.P50, r.Verdict)
	}
	for _, a := range r.Variants() {
		if a.Sleeps == 0 || len(a.Histogram) == 0 || a.OtherCPUs != nil || a.WorkPerSecond != nil {
			t.Errorf("variant %s: %+v", a.Name, a)
		}
	}
	again, err := Simulated(0)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("another run gave another result: %v", err)
	}
}

func TestSimulatedSecondsAreBounded(t *testing.T) {
	for _, s := range []float64{-1, 0.1, 1e9} {
		if _, err := Simulated(s); err == nil || !strings.Contains(err.Error(), "--for") {
			t.Errorf("%g s: %v", s, err)
		}
	}
}
