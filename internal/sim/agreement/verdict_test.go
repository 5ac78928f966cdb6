package agreement

import (
	"math"
	"slices"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// outcome of draw 23: a burner and a sleeper in one cgroup.
func outcome(throttled uint64, used, held, p50, p95 float64) scenario.Outcome {
	return scenario.Outcome{
		Seconds: 10, Cgroups: map[string]scenario.CgroupOutcome{
			"a": {Periods: 500, ThrottledPeriods: throttled, UsageSeconds: 10 * used, ThrottledSeconds: 10 * held}},
		Workloads: map[string]scenario.WorkloadOutcome{
			"a-burn": {}, "a-sleeper": {Latencies: scenario.Latencies{Count: 100, P50: &p50, P95: &p95}}},
	}
}

func TestJudge(t *testing.T) {
	d := draw(t, 23)
	real := []scenario.Outcome{
		outcome(495, 0.498, 0.40, 20, 80), outcome(500, 0.500, 0.44, 20, 84), outcome(500, 0.501, 0.42, 20, 81),
		outcome(500, 0.500, 0.46, 21, 90), outcome(490, 0.499, 0.50, 20, 88),
	}
	for name, c := range map[string]struct {
		simulated scenario.Outcome
		misses    []Figure
	}{
		"the same":                 {outcome(500, 0.500, 0.44, 20, 84), nil},
		"all within a bound":       {outcome(486, 0.509, 0.48, 24, 96), nil},
		"within the range alone":   {outcome(490, 0.500, 0.50, 20, 90), nil},
		"a point below":            {outcome(479, 0.500, 0.44, 20, 84), []Figure{ThrottledPeriods}},
		"too much CPU":             {outcome(500, 0.511, 0.44, 20, 84), []Figure{Use}},
		"throttled for too long":   {outcome(500, 0.500, 0.51, 20, 84), []Figure{ThrottledTime}},
		"sleeps a tick too short":  {outcome(500, 0.500, 0.44, 15.9, 70), []Figure{P50, P95}},
		"a tick for short ones":    {outcome(500, 0.500, 0.44, 16.1, 84), nil},
		"nothing of what is there": {scenario.Outcome{Seconds: 10}, []Figure{ThrottledPeriods, Use, ThrottledTime, P50, P95}},
	} {
		j := Judge(d, []scenario.Outcome{c.simulated}, real)
		var got []Figure
		for _, v := range j.Misses() {
			got = append(got, v.Figure)
			if j.Agrees(v.Figure) {
				t.Errorf("%s: %s agrees and misses", name, v.Figure)
			}
		}
		if !slices.Equal(got, c.misses) {
			t.Errorf("%s: misses %v, want %v", name, got, c.misses)
		}
	}
}

// One real run in five is off: it disagrees with the four others, they agree
// with each other and with it in their range.
func TestSelf(t *testing.T) {
	d := draw(t, 23)
	same := outcome(500, 0.500, 0.44, 20, 84)
	j := Judge(d, []scenario.Outcome{same}, []scenario.Outcome{same, same, outcome(450, 0.500, 0.44, 20, 84), same, same})
	if math.Abs(j.Self[ThrottledPeriods]-0.8) > 1e-9 || math.Abs(j.Self[Use]-1) > 1e-9 || math.Abs(j.SelfAll-0.8) > 1e-9 {
		t.Errorf("%v, all %v", j.Self, j.SelfAll)
	}
}

// A figure that nothing was counted for is compared as such.
func TestNothingCounted(t *testing.T) {
	d := draw(t, 23)
	with, without := outcome(500, 0.5, 0.44, 20, 84), outcome(500, 0.5, 0.44, 20, 84)
	without.Workloads = map[string]scenario.WorkloadOutcome{}
	for _, c := range []struct {
		simulated scenario.Outcome
		real      []scenario.Outcome
		agrees    bool
	}{
		{without, []scenario.Outcome{without, without, without}, true},
		{with, []scenario.Outcome{without, without, without}, false},
		{without, []scenario.Outcome{with, with, with}, false},
		{with, []scenario.Outcome{with, without, with}, true},
	} {
		if got := Judge(d, []scenario.Outcome{c.simulated}, c.real).Agrees(P50); got != c.agrees {
			t.Errorf("agrees: %v", got)
		}
	}
}
