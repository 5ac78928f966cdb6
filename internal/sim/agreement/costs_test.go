package agreement

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// 2000 runs of 500 us that cost 40 us more each.
func TestWakeCost(t *testing.T) {
	o := scenario.Outcome{
		Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{"a": {UsageSeconds: 2000 * 540e-6}},
		Workloads: map[string]scenario.WorkloadOutcome{"a": {Latencies: scenario.Latencies{Count: 2000}}},
	}
	if c, ok := wakeCost(o); !ok || c.Round(time.Microsecond) != 40*time.Microsecond {
		t.Error(c, ok)
	}
	nothing := o
	nothing.Workloads = map[string]scenario.WorkloadOutcome{"a": {}}
	if c, ok := WakeCosts([]scenario.Outcome{o, nothing, o}); ok {
		t.Errorf("of nothing: %v", c)
	}
}

// What the simulator is told comes out of simulated calibrations again.
func TestWakeCostThereAndBack(t *testing.T) {
	want := scenario.WakeCosts{Long: 70 * time.Microsecond, Short: 40 * time.Microsecond, Busy: 20 * time.Microsecond,
		Delay: 50 * time.Microsecond}
	var outcomes []scenario.Outcome
	for _, s := range Calibrations(10 * time.Second) {
		r, err := simulate.Run(Draw{scenario: s}.Simulated(10*time.Second, want), simulate.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, r.Outcome)
	}
	got, ok := WakeCosts(outcomes)
	for i := range Parts(&want) {
		if apart := *Parts(&got)[i] - *Parts(&want)[i]; !ok || apart.Abs() > 8*time.Microsecond {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
