package simulate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/agreement/measure"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// onAllCPUs are scenarios for all CPUs of a host, with so little to do that the
// lab's emulated CPUs, which share a few real ones, do it as real ones would. The
// study has the rest: TestAgainstThisKernel draws such ones, and make accuracy-lab
// runs them all.
var onAllCPUs = []struct {
	study                    bool
	name, cgroups, workloads string
}{
	{true, "one burns", "a: {quota: 30ms, period: 100ms}", "burn: {kind: burn, cgroup: a, threads: 1}"},
	{false, "four burn", "a: {quota: 50ms, period: 100ms}", "burn: {kind: burn, cgroup: a, threads: 4}"},
	{true, "a short period", "a: {quota: 4ms, period: 10ms}", "burn: {kind: burn, cgroup: a, threads: 2}"},
	{true, "a long period", "a: {quota: 60ms, period: 200ms}", "burn: {kind: burn, cgroup: a, threads: 2}"},
	// Not in step with the periods, or chance decides once how the two fall together.
	{true, "turns", "a: {quota: 30ms, period: 100ms}", "turns: {kind: neighbour, cgroup: a, threads: 1, on: 60ms, off: 150ms}"},
	{false, "turns with a burst", "a: {quota: 30ms, period: 100ms, burst: 30ms}",
		"turns: {kind: neighbour, cgroup: a, threads: 1, on: 45ms, off: 150ms}"},
	{false, "a parent's quota", "pod: {quota: 50ms, period: 100ms}\n  a: {parent: pod, quota: 20ms, period: 100ms}\n  b: {parent: pod}",
		"a-burn: {kind: burn, cgroup: a, threads: 1}\n  b-burn: {kind: burn, cgroup: b, threads: 1}"},
	{false, "below its limit", "a: {quota: 80ms, period: 100ms}", "pool: {kind: sleep-run, cgroup: a, threads: 2, run: 4ms, sleep: 36ms}"},
}

const (
	// onAllCPUsFor is how long each runs: of 30 periods and more one is 3 points. Where one run is too far off, which what
	// else the machine does can bring about, onAllCPUsMore more decide by their median.
	onAllCPUsFor  = 6 * time.Second
	onAllCPUsMore = 2
	// envAllCPUs, if set, runs the study's too and leaves the figures for make accuracy-lab.
	envAllCPUs = "UNTHROTTLE_ALL_CPUS"
)

// TestOnAllCPUs compares throttled periods and CPU use with this kernel's, on all
// CPUs: in the lab sixteen of its kernels.
func TestOnAllCPUs(t *testing.T) {
	require.Alone(t, "throttled periods and CPU use with the simulator's")
	require.TestAll(t, "emulated CPUs that share two busy ones do not keep to their quotas; TestAgainstThisKernel compares on two")
	require.CPUs(t, 16) // with fewer, TestAgainstThisKernel does it
	tree := cgrouptest.New(t)
	tree.Make("inner") // on v2: makes the top hand its controllers on
	weigh(t, tree, tree.Top)
	m, err := measure.Machine(tree.Host, runtime.NumCPU())
	if err != nil && require.InLab() {
		// Its kernels are Debian's, whose configuration is not in the guest: CONFIG_HZ=250.
		var u unix.Utsname
		err = unix.Uname(&u)
		m = measure.MachineOf(tree.Host, runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), 250)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := realrun.Options{Host: tree.Host, Scope: tree.Top}
	cost, err := measure.WakeCosts(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Linux %s, %d CPUs at %d Hz; wake-ups cost %+v", m.Kernel, m.CPUs, m.HZ, *cost.WakeCosts)
	figures := agreement.AllCPUs{Release: m.Kernel, CPUs: m.CPUs, HZ: m.HZ}
	for _, test := range onAllCPUs {
		if test.study && os.Getenv(envAllCPUs) == "" {
			continue
		}
		text := fmt.Sprintf("version: 1\nduration: %v\nhost: {cpus: %d, hz: %d, kernel: %q, cgroup_version: "+
			"%d}\ncgroups:\n  %s\nworkloads:\n  %s\n",
			onAllCPUsFor, m.CPUs, m.HZ, m.Kernel, m.CgroupVersion, test.cgroups, test.workloads)
		s, err := scenario.Parse(test.name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var simulated, real []scenario.Outcome
		for seed := range uint64(20) {
			told := s
			told.Host.WakeCosts = *cost.WakeCosts
			r, err := simulate.Run(told, simulate.Options{Seed: seed + 1})
			if err != nil {
				t.Fatal(err)
			}
			simulated = append(simulated, r.Outcome)
		}
		var rows []agreement.AllCPUsRow
		for range 1 + onAllCPUsMore {
			r, err := realrun.Run(context.Background(), s, o)
			if err != nil {
				t.Fatal(err)
			}
			if over := agreement.Over(&s, r.Outcome); len(over) > 0 {
				t.Errorf("%s: more than the quota: %v", test.name, over)
			}
			real = append(real, r.Outcome)
			rows = agreement.CompareShares(test.name, s, simulated, real)
			if len(real) == 1 && !slices.ContainsFunc(rows, agreement.AllCPUsRow.Apart) {
				break
			}
		}
		for _, r := range rows {
			if t.Logf("%v (%.3g)", r, r.Real); r.Apart() {
				t.Errorf("%v", r)
			}
		}
		figures.Rows = append(figures.Rows, rows...)
	}
	if os.Getenv(envAllCPUs) == "" {
		return
	}
	text, err := json.MarshalIndent(figures, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(wire.OutDir, "allcpus-"+m.Kernel+".json"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
