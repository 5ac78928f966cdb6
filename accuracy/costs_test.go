package accuracy

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/simulate"
)

// 2000 runs of 500 us that cost 40 us more each.
func TestWakeCost(t *testing.T) {
	o := scenario.Outcome{
		Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{"a": {UsageSeconds: 2000 * 540e-6}},
		Workloads: map[string]scenario.WorkloadOutcome{"a": {Count: 2000}},
	}
	if c, ok := WakeCost(o); !ok || c.Round(time.Microsecond) != 40*time.Microsecond {
		t.Error(c, ok)
	}
	o.Workloads["a"] = scenario.WorkloadOutcome{}
	if c, ok := WakeCost(o); ok {
		t.Errorf("of nothing: %v", c)
	}
}

// What the simulator is told comes out of a simulated calibration again.
func TestWakeCostThereAndBack(t *testing.T) {
	const want = 40 * time.Microsecond
	d := Draw{scenario: Calibration(10 * time.Second)}
	r, err := simulate.Run(d.Simulated(10*time.Second, want), simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := WakeCost(r.Outcome); !ok || (got-want).Abs() > 2*time.Microsecond {
		t.Errorf("%v, want %v", got, want)
	}
}
