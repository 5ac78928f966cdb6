package simulate_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/cgroup/cgrouptest"
	"github.com/unthrottle/unthrottle/lab/require"
	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/simulate"
	"github.com/unthrottle/unthrottle/workload"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workload.ChildCommand {
		os.Exit(workload.ChildMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// figures of one run, real or simulated.
type figures struct {
	throttled float64 // share of periods
	used      float64 // CPUs
	held      float64 // throttled CPU-seconds per second
	p50, p90  float64 // of the sleeper's sleeps, ms
}

func (f figures) String() string {
	return fmt.Sprintf("throttled %.2f, CPUs used %.3f, throttled %.3f s/s, sleeps p50 %.1f p90 %.1f ms", f.throttled, f.used, f.held, f.p50, f.p90)
}

// TestAgainstThisKernel runs burners and a sleeper under a quota on this host
// and in the simulator. The cgroup has the highest weight, but the host may be
// busy: the bounds are on what the quota decides, not on who waits how long.
func TestAgainstThisKernel(t *testing.T) {
	if require.InLab() {
		t.Skip("needs a host: emulated CPUs share two real ones, which no simulated host does; runs on any host")
	}
	tree := cgrouptest.New(t)
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		t.Fatal(err)
	}
	release, _, _ := strings.Cut(unix.ByteSliceToString(uts.Release[:]), "-")
	release, _, _ = strings.Cut(release, "+")
	cpus := runtime.NumCPU()
	for _, test := range []struct {
		burners int
		limit   float64
	}{{1, 0.2}, {cpus, 0.25 * float64(cpus)}, {2 * cpus, 0.3 * float64(cpus)}} {
		name := fmt.Sprintf("%d burners at %.2g CPUs", test.burners, test.limit)
		path := tree.Make(fmt.Sprintf("b%dq%.0f", test.burners, 1000*test.limit))
		tree.Limit(path, test.limit)
		weigh(t, tree, path)
		simulated := median(t, fmt.Sprintf("version: 1\nduration: 20s\nhost: {cpus: %d, kernel: %q}\ncgroups: {a: {quota: %dus}}\n"+
			"workloads: {burn: {kind: burn, cgroup: a, threads: %d}, sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}}\n",
			cpus, release, int(test.limit*1e5), test.burners))
		t.Logf("%-24s simulated: %v", name, simulated)
		// A busy host cannot always use a quota up: a wrong rule fails each time.
		off := ""
		for range 3 {
			real := measure(t, tree, path, test.burners)
			t.Logf("%-24s real:      %v", "", real)
			if off = apart(real, simulated, test.limit); off == "" {
				break
			}
		}
		if off != "" {
			t.Errorf("%s: %s", name, off)
		}
	}
}

// apart says which figure of the quota is off. A window of 1.5 s has a period
// of 15 more or less.
func apart(real, simulated figures, limit float64) string {
	if off := real.used - simulated.used; off > 0.12*limit || off < -0.12*limit {
		return fmt.Sprintf("%.3f CPUs used, simulated %.3f", real.used, simulated.used)
	}
	if off := real.throttled - simulated.throttled; off > 0.15 || off < -0.15 {
		return fmt.Sprintf("throttled in %.2f of the periods, simulated %.2f", real.throttled, simulated.throttled)
	}
	return ""
}

// weigh gives a cgroup the highest weight.
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

// window is how long the real host is looked at.
const window = 1500 * time.Millisecond

func measure(t *testing.T, tree *cgrouptest.Tree, path string, burners int) figures {
	t.Helper()
	p, err := workload.Start("", workload.Spec{Burners: burners, Sleep: 10 * time.Millisecond, Deadline: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for _, c := range cgroup.Controllers() {
		if _, ok := tree.Host.Version(c); !ok {
			continue
		}
		if err := tree.Host.Attach(c, path, p.Pid()); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Go(); err != nil {
		t.Fatal(err)
	}
	group, err := tree.Host.Group(path)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	before, begin := stat(t, tree, group), time.Now()
	var sleeps []float64
	end := time.After(window)
	for open := true; open; {
		select {
		case r, ok := <-p.Records():
			if open = ok; ok {
				sleeps = append(sleeps, float64(r.Took)/1e6)
			}
		case <-end:
			open = false
		}
	}
	after, seconds := stat(t, tree, group), time.Since(begin).Seconds()
	slices.Sort(sleeps)
	f := figures{
		throttled: float64(after.ThrottledPeriods-before.ThrottledPeriods) / float64(after.Periods-before.Periods),
		held:      (after.Throttled - before.Throttled).Seconds() / seconds,
	}
	if after.Usage == nil || before.Usage == nil || len(sleeps) == 0 {
		t.Fatalf("%s: usage %v, %d sleeps", path, after.Usage, len(sleeps))
	}
	f.used = (*after.Usage - *before.Usage).Seconds() / seconds
	f.p50, f.p90 = sleeps[len(sleeps)/2], sleeps[len(sleeps)*9/10]
	return f
}

func stat(t *testing.T, tree *cgrouptest.Tree, g cgroup.Group) cgroup.Stat {
	t.Helper()
	s, err := cgroup.ReadStat(tree.Host, g)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// median of ten seeds.
func median(t *testing.T, text string) figures {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var runs []scenario.Outcome
	for seed := range uint64(10) {
		r, err := simulate.Run(s, simulate.Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r.Outcome)
	}
	o := scenario.Quantile(runs, 0.5)
	a, sleeper := o.Cgroups["a"], o.Workloads["sleeper"]
	return figures{
		throttled: float64(a.ThrottledPeriods) / float64(a.Periods), used: a.UsageSeconds / o.Seconds,
		held: a.ThrottledSeconds / o.Seconds, p50: *sleeper.P50, p90: *sleeper.P90,
	}
}
