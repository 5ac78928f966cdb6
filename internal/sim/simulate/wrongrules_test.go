package simulate_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

const (
	// window is how long a draw runs for real.
	window = 2 * time.Second
	// mostBias is how far the CPU use of all draws together may be off, as a share.
	mostBias = 0.04
	// manySeeds are simulated of each draw: their range is what chance can do.
	manySeeds = 60
)

// drawn for CI of those in docs/results/accuracy.md, where they agree but for chance: burners, pools and turns, with and without
// bursts, nested, on one CPU, with periods of 10 to 200 ms.
var drawn = []uint64{0, 2, 5, 10, 17, 19, 23, 24}

// wrong is what such a test calls a kernel with other rules. One draw in four is
// left to chance: docs/results/accuracy.md has how often the kernel agrees with itself.
func wrong(verdicts []agreement.Verdict, missed, judged int) bool {
	return 4*missed > judged || math.Abs(agreement.Bias(verdicts)) > mostBias
}

// misses names what does not agree; "": all does.
func misses(verdicts []agreement.Verdict) (text string) {
	for _, v := range verdicts {
		if !v.Agrees {
			text += fmt.Sprintf("%s of %s %.4g, simulated %.4g; ", v.Figure, v.Of, v.Real[0], v.Simulated)
		}
	}
	return text
}

func seeds(t *testing.T, d agreement.Draw, costs scenario.WakeCosts) (outcomes []scenario.Outcome) {
	t.Helper()
	for seed := range uint64(manySeeds) {
		r, err := simulate.Run(d.Simulated(window, costs), simulate.Options{Seed: seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, r.Outcome)
	}
	return outcomes
}

// What TestAgainstThisKernel would say of a kernel with other rules: it must miss
// enough, and with the same rules and other chances it must not.
func TestWrongRulesAreSeen(t *testing.T) {
	m := agreement.Machine{CPUs: 2, HZ: 250, Kernel: "6.18", CgroupVersion: 1}
	costs := scenario.WakeCosts{Long: 40 * time.Microsecond}
	for name, c := range map[string]struct {
		change func(*scenario.Scenario)
		seen   bool
	}{
		"the same rules": {func(*scenario.Scenario) {}, false},
		"a tenth more quota": {func(s *scenario.Scenario) {
			for i := range s.Cgroups {
				s.Cgroups[i].Limit.Quota += (s.Cgroups[i].Limit.Quota / 10).Truncate(bandwidth.Unit)
			}
		}, true},
		"half of the quota": {func(s *scenario.Scenario) {
			for i := range s.Cgroups {
				s.Cgroups[i].Limit.Quota = max(time.Millisecond, (s.Cgroups[i].Limit.Quota / 2).Truncate(bandwidth.Unit))
				s.Cgroups[i].Limit.Burst = 0
			}
		}, true},
	} {
		missed, all := 0, []agreement.Verdict{}
		for _, seed := range drawn {
			d, err := agreement.New(seed, m)
			if err != nil {
				t.Fatal(err)
			}
			s := d.Simulated(window, costs)
			s.Cgroups = slices.Clone(s.Cgroups)
			c.change(&s)
			other, err := simulate.Run(s, simulate.Options{Seed: 1000})
			if err != nil {
				t.Fatal(err)
			}
			verdicts := agreement.Plausible(d, seeds(t, d, costs), other.Outcome)
			all = append(all, verdicts...)
			if misses(verdicts) != "" {
				missed++
			}
		}
		t.Logf("%s: %d of %d draws miss, CPU use %+.1f %%", name, missed, len(drawn), 100*agreement.Bias(all))
		if got := wrong(all, missed, len(drawn)); got != c.seen {
			t.Errorf("%s: seen %v", name, got)
		}
	}
}
