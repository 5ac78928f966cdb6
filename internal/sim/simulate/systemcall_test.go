package simulate

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// One call of 50 ms after 10 ms under 10 ms per 100 ms. Up to 6.17 it is stopped as
// any thread; from 6.18 on it runs to its end, and the debt keeps the thread from
// user mode for as many refills.
func TestSystemCallsRunThrough(t *testing.T) {
	calls := func(kernel, duration string) (float64, scenario.WorkloadOutcome) {
		o := run(t, parseText(t, "version: 1\nduration: "+duration+"\nhost: {cpus: 2, hz: 1000, kernel: \""+kernel+
			"\"}\ncgroups: {a: {quota: 10ms}}\nworkloads: {k: {kind: kernel, cgroup: a, run: 50ms, sleep: 10ms}}\n"), 1)
		return o.Cgroups["a"].UsageSeconds * 1000, o.Workloads["k"]
	}
	for kernel, want := range map[string]float64{"6.12": 20, "6.17": 20, "6.18": 50, "7.2": 50} {
		if used, _ := calls(kernel, "80ms"); used > want+2.1 || used < want/2-0.1 || want == 50 && used < 49.9 {
			t.Errorf("%s: %v ms used in the first 80 ms, want about %v", kernel, used, want)
		}
		// In the long run both use the quota.
		used, k := calls(kernel, "20s")
		near(t, kernel+": CPU of 20 s", used, 2000, 0.04)
		if k.Count < 38 || *k.P50 < 350 || *k.P50 > 550 {
			t.Errorf("%s: %d calls of %v ms", kernel, k.Count, *k.P50)
		}
	}
}

// Nested limits, many threads on few CPUs, a burner beside them: usage stays with
// the quota and the calls in it.
func TestSystemCallsBesideOthers(t *testing.T) {
	o := run(t, parseText(t, file(`cpus: 3, kernel: "6.18"`, "p: {quota: 60ms}, a: {parent: p, quota: 50ms}",
		"k: {kind: kernel, cgroup: a, threads: 5, run: {uniform: [1ms, 30ms]}, sleep: 5ms}, b: {kind: burn, cgroup: "+
			"a}, c: {kind: sleep-run, cgroup: p, threads: 3, run: 2ms, sleep: 20ms}")), 1)
	near(t, "the child's CPU", o.Cgroups["a"].UsageSeconds, 0.5*4, 0.12)
	if o.Cgroups["p"].UsageSeconds > 0.6*4*1.1+0.15 {
		t.Errorf("the parent used %v s", o.Cgroups["p"].UsageSeconds)
	}
}
