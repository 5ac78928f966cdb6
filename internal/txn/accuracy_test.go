package txn

import (
	"math"
	"testing"
)

func came(remedy string, low, high, ms float64) InForce {
	return InForce{Remedy: remedy, Expected: &Expected{PoolP99MsLow: &low, PoolP99MsHigh: &high},
		Outcome: &Outcome{After: &Figures{PoolP99Ms: &ms}}}
}

func TestAccuracies(t *testing.T) {
	still := InForce{Remedy: "pin", Expected: &Expected{StoppedPerSecondLow: new(0.0), StoppedPerSecondHigh: new(0.0)},
		Outcome: &Outcome{After: &Figures{StoppedPerSecondLow: new(0.0), StoppedPerSecondHigh: new(0.0)}}}
	got := Accuracies([]InForce{
		came("burst", 10, 40, 20), came("burst", 10, 40, 60), came("burst", 40, 40, 80), still,
		{Remedy: "weight"}, {Remedy: "raise", Expected: &Expected{}},
	})
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	burst, pin := got[0], got[1]
	if burst.Remedy != "burst" || burst.Figure != "pool_p99_ms" || burst.Measured != 3 || burst.Within != 1 ||
		burst.Ratio == nil || math.Abs(*burst.Ratio-2) > 1e-9 {
		t.Errorf("%+v", burst)
	}
	if pin.Figure != "stopped_per_second" || pin.Measured != 1 || pin.Within != 1 || pin.Ratio != nil {
		t.Errorf("%+v: of 0 there is no ratio", pin)
	}
	if none := Accuracies(nil); none == nil || len(none) != 0 {
		t.Errorf("of nothing: %v", none)
	}
}
