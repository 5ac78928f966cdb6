package scenario

import (
	"reflect"
	"testing"
)

func TestQuantile(t *testing.T) {
	ms := func(v float64) *float64 { return &v }
	run := func(periods uint64, p50 *float64, width ...Width) Outcome {
		return Outcome{Seconds: 2, Cgroups: map[string]CgroupOutcome{"a": {Periods: periods, Width: width}},
			Workloads: map[string]WorkloadOutcome{"w": {Latencies: Latencies{P50: p50}}, "none": {}}}
	}
	runs := []Outcome{
		run(5, ms(7), Width{0, 1}, Width{2, 1}), run(9, nil, Width{0, 2}), run(7, ms(3), Width{0, 1.5}, Width{1, 0.5}), run(8, ms(4)),
	}
	for p, want := range map[float64]Outcome{
		0: run(5, ms(3)), 0.5: run(7, ms(4), Width{0, 1}), 1: run(9, ms(7), Width{0, 2}, Width{1, 0.5}, Width{2, 1}),
	} {
		got := Quantile(runs, p)
		if got.Cgroups["a"].Periods != want.Cgroups["a"].Periods ||
			*got.Workloads["w"].P50 != *want.Workloads["w"].P50 || got.Workloads["none"].P50 != nil {
			t.Errorf("%v: %+v", p, got)
		}
		if w := want.Cgroups["a"].Width; len(w)+len(got.Cgroups["a"].Width) > 0 && !reflect.DeepEqual(got.Cgroups["a"].Width, w) {
			t.Errorf("%v: widths %v, want %v", p, got.Cgroups["a"].Width, w)
		}
	}
	if outcome := Quantile(runs[:1], 0.5); !reflect.DeepEqual(outcome, runs[0]) {
		t.Errorf("one run: %+v", outcome)
	}
}
