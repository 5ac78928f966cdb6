package simulate_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/bench/accuracy/measure"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == threads.Command {
		os.Exit(threads.Main())
	}
	os.Exit(m.Run())
}

const (
	// window is how long a draw runs for real.
	window = 2 * time.Second
	// patience is how long all draws may take together: then none is run again.
	patience = 40 * time.Second
	// What others may have of the CPUs in a run that counts against the simulator.
	// It is short: starting it takes a larger part than in docs/results/accuracy.md.
	mostSteal, mostOthers = 0.03, 0.06
	// mostBias is how far the CPU use of all draws together may be off, as a share.
	mostBias = 0.04
	// manySeeds are simulated of each draw: their range is what chance can do.
	manySeeds = 60
)

// drawn for CI of those in docs/results/accuracy.md, where they agree but for chance: burners, pools and turns, with and without
// bursts, nested, on one CPU, with periods of 10 to 200 ms.
var drawn = []uint64{0, 2, 5, 10, 17, 19, 23, 24}

// TestAgainstThisKernel runs eight draws of package accuracy for real, one after
// the other, and asks whether the simulator has a seed that comes near, and whether
// all together use as much CPU as simulated. A draw that misses, or was disturbed,
// runs once more. In no run, however disturbed, may
// a cgroup use more than its quota gives. More than half disturbed is no result.
func TestAgainstThisKernel(t *testing.T) {
	if require.InLab() {
		t.Skip("needs a host: emulated CPUs share two real ones, which no simulated host does; runs on any host")
	}
	require.CPUs(t, 2)
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	weigh(t, tree, tree.Top)
	m, err := measure.Machine(tree.Host, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, o := context.Background(), realrun.Options{Host: tree.Host, Scope: tree.Top}
	r, err := measure.WakeCosts(ctx, m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("wake-ups cost %+v", *r.WakeCosts)
	begin, judged, missed, all := time.Now(), 0, 0, []accuracy.Verdict{}
	for _, seed := range drawn {
		d, err := accuracy.New(seed, m)
		if err != nil {
			t.Fatal(err)
		}
		simulated := seeds(t, d, *r.WakeCosts)
		verdicts, noise := run(t, d, m, o, simulated)
		if (noise != "" || misses(verdicts) != "") && time.Since(begin) < patience {
			t.Logf("draw %d once more: %s%s", seed, noise, misses(verdicts))
			verdicts, noise = run(t, d, m, o, simulated)
		}
		if noise != "" {
			t.Logf("draw %d: too noisy, not judged: %s", seed, noise)
			continue
		}
		judged++
		all = append(all, verdicts...)
		if why := misses(verdicts); why != "" {
			missed++
			t.Logf("draw %d misses: %s\n%s", seed, why, d.Text)
		}
	}
	t.Logf("%d of %d draws judged, %d missed; CPU use %+.1f %%", judged, len(drawn), missed, 100*accuracy.Bias(all))
	if t.Failed() {
		return
	}
	if 2*judged <= len(drawn) {
		t.Skipf("needs a quieter host: %d of %d draws were disturbed by more than %g %% of steal or %g %% of other processes; runs on any quiet host", len(drawn)-judged, len(drawn), 100*mostSteal, 100*mostOthers)
	}
	if wrong(all, missed, judged) {
		t.Errorf("%d of %d draws miss, CPU use is off by %+.1f %%", missed, judged, 100*accuracy.Bias(all))
	}
}

// wrong is what such a test calls a kernel with other rules. One draw in four is
// left to chance: docs/results/accuracy.md has how often the kernel agrees with itself.
func wrong(all []accuracy.Verdict, missed, judged int) bool {
	return 4*missed > judged || math.Abs(accuracy.Bias(all)) > mostBias
}

// misses names what does not agree; "": all does.
func misses(all []accuracy.Verdict) (text string) {
	for _, v := range all {
		if !v.Agrees {
			text += fmt.Sprintf("%s of %s %.4g, simulated %.4g; ", v.Figure, v.Of, v.Real[0], v.Simulated)
		}
	}
	return text
}

// run runs a draw for real, and says by what it was disturbed; "": by nothing.
func run(t *testing.T, d accuracy.Draw, m accuracy.Machine, o realrun.Options, simulated []scenario.Outcome) (all []accuracy.Verdict, noise string) {
	t.Helper()
	r, err := measure.Real(context.Background(), d, m, window, o)
	if err != nil {
		t.Fatal(err)
	}
	s := d.Lasting(window)
	if over := accuracy.Over(&s, r.Outcome); len(over) > 0 {
		t.Errorf("draw %d: more than the quota: %v", d.Seed, over)
	}
	if r.Noise.Steal > mostSteal || r.Noise.Others > mostOthers {
		return nil, fmt.Sprintf("steal %.1f %%, others %.1f %%", 100*r.Noise.Steal, 100*r.Noise.Others)
	}
	return accuracy.Plausible(d, simulated, r.Outcome), ""
}

func seeds(t *testing.T, d accuracy.Draw, costs scenario.WakeCosts) (all []scenario.Outcome) {
	t.Helper()
	for seed := range uint64(manySeeds) {
		r, err := simulate.Run(d.Simulated(window, costs), simulate.Options{Seed: seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Outcome)
	}
	return all
}

// weigh gives a cgroup the highest weight, so that other load counts little.
func weigh(t *testing.T, tree *cgrouptest.Tree, path string) {
	t.Helper()
	file, value := "cpu.shares", "262144"
	if v, _ := tree.Host.Version(cgroup.CPU); v == cgroup.V2 {
		file, value = "cpu.weight", "10000"
	}
	if err := tree.Host.Write(cgroup.CPU, path, file, value); err != nil {
		t.Fatal(err)
	}
}

// What TestAgainstThisKernel would say of a kernel with other rules: it must miss
// enough, and with the same rules and other chances it must not.
func TestWrongRulesAreSeen(t *testing.T) {
	m := accuracy.Machine{CPUs: 2, HZ: 250, Kernel: "6.18", CgroupVersion: 1}
	costs := scenario.WakeCosts{Long: 40 * time.Microsecond}
	for name, c := range map[string]struct {
		change func(*scenario.Scenario)
		seen   bool
	}{
		"the same rules": {func(*scenario.Scenario) {}, false},
		"a tenth more quota": {func(s *scenario.Scenario) {
			for i := range s.Cgroups {
				s.Cgroups[i].Limit.Quota += s.Cgroups[i].Limit.Quota / 10
			}
		}, true},
		"half of the quota": {func(s *scenario.Scenario) {
			for i := range s.Cgroups {
				s.Cgroups[i].Limit.Quota = max(time.Millisecond, s.Cgroups[i].Limit.Quota/2)
				s.Cgroups[i].Limit.Burst = 0
			}
		}, true},
	} {
		missed, all := 0, []accuracy.Verdict{}
		for _, seed := range drawn {
			d, err := accuracy.New(seed, m)
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
			verdicts := accuracy.Plausible(d, seeds(t, d, costs), other.Outcome)
			all = append(all, verdicts...)
			if misses(verdicts) != "" {
				missed++
			}
		}
		t.Logf("%s: %d of %d draws miss, CPU use %+.1f %%", name, missed, len(drawn), 100*accuracy.Bias(all))
		if got := wrong(all, missed, len(drawn)); got != c.seen {
			t.Errorf("%s: seen %v", name, got)
		}
	}
}
