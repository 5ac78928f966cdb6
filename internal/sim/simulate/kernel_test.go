package simulate_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/agreement/measure"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
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
	// patience is how long all draws may take together: then none is run again.
	patience = 40 * time.Second
	// What others may have of the CPUs in a run that counts against the simulator.
	// It is short: starting it takes a larger part than in docs/results/accuracy.md.
	mostSteal, mostOthers = 0.03, 0.06
)

// TestAgainstThisKernel runs four draws of package agreement for real, eight in make test-all, one after
// the other, and asks whether the simulator has a seed that comes near, and whether
// all together use as much CPU as simulated. A draw that misses, or was disturbed,
// runs once more. In no run, however disturbed, may
// a cgroup use more than its quota gives. More than half disturbed is no result.
func TestAgainstThisKernel(t *testing.T) {
	require.CheckAll(t, "it wants a quiet host for half a minute; TestRealSelfCheck of internal/sim/forecast compares a replay with its recording")
	require.Alone(t, "throttled periods and CPU use with the simulator's")
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
	draws := drawn
	if !require.All() {
		draws = drawn[:4]
	}
	begin, judged, missed, all := time.Now(), 0, 0, []agreement.Verdict{}
	for _, seed := range draws {
		d, err := agreement.New(seed, m)
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
	t.Logf("%d of %d draws judged, %d missed; CPU use %+.1f %%", judged, len(draws), missed, 100*agreement.Bias(all))
	if t.Failed() {
		return
	}
	if 2*judged <= len(draws) {
		t.Skipf("needs a quieter host: %d of %d draws were disturbed by more than %g %% of steal or %g %% of other "+
			"processes; runs on any quiet host", len(draws)-judged, len(draws), 100*mostSteal, 100*mostOthers)
	}
	if wrong(all, missed, judged) {
		t.Errorf("%d of %d draws miss, CPU use is off by %+.1f %%", missed, judged, 100*agreement.Bias(all))
	}
}

// run runs a draw for real, and says by what it was disturbed; "": by nothing.
func run(t *testing.T, d agreement.Draw, m agreement.Machine, o realrun.Options,
	simulated []scenario.Outcome) (verdicts []agreement.Verdict, noise string) {
	t.Helper()
	r, err := measure.Real(context.Background(), d, m, window, o)
	if err != nil {
		t.Fatal(err)
	}
	s := d.Lasting(window)
	if over := agreement.Over(&s, r.Outcome); len(over) > 0 {
		t.Errorf("draw %d: more than the quota: %v", d.Seed, over)
	}
	if r.Noise.Steal > mostSteal || r.Noise.Others > mostOthers {
		return nil, fmt.Sprintf("steal %.1f %%, others %.1f %%", 100*r.Noise.Steal, 100*r.Noise.Others)
	}
	return agreement.Plausible(d, simulated, r.Outcome), ""
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
