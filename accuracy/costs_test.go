package accuracy

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/simulate"
)

// 2000 runs of 500 us that cost 40 us more each, and a runtime of 30 us every 10 ms in both cgroups.
func TestCostsOf(t *testing.T) {
	o := scenario.Outcome{
		Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{"busy": {UsageSeconds: 2000*540e-6 + 0.03}, "idle": {UsageSeconds: 0.03}},
		Workloads: map[string]scenario.WorkloadOutcome{"busy": {Count: 2000}},
	}
	c, ok := CostsOf(o)
	if !ok || c.Wake.Round(time.Microsecond) != 40*time.Microsecond || c.Runtime.Round(time.Microsecond) != 30*time.Microsecond {
		t.Errorf("%+v", c)
	}
	o.Workloads["busy"] = scenario.WorkloadOutcome{}
	if c, ok := CostsOf(o); ok {
		t.Errorf("of nothing: %+v", c)
	}
}

// What the simulator is told comes out of a simulated calibration again.
func TestCostsThereAndBack(t *testing.T) {
	want := Costs{Wake: 40 * time.Microsecond, Runtime: 50 * time.Microsecond}
	d := Draw{scenario: Calibration(10 * time.Second)}
	r, err := simulate.Run(d.Simulated(10*time.Second, want), simulate.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, ok := CostsOf(r.Outcome)
	if !ok || (got.Wake-want.Wake).Abs() > 2*time.Microsecond || (got.Runtime-want.Runtime).Abs() > 2*time.Microsecond {
		t.Errorf("%+v, want %+v", got, want)
	}
	for k := range values(r.Outcome) {
		if strings.HasSuffix(k.Of, runtimeSuffix) {
			t.Errorf("%v is compared", k)
		}
	}
}
