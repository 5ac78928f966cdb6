package simulate

import (
	"fmt"
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// What a kernel made of a thread that runs and sleeps beside a burner on one CPU, Linux 6.18.44, 2 CPUs at 250 Hz, three
// runs of 5 s. In one cgroup: 1696, 1697 and 1685 runs of 0.5 ms, 95 % within 4.1 to 4.3 ms. In two: 1693, 1688 and
// 1685, within 4.1, and 0.172 CPUs. Three such threads of 2 ms: 829, 838 and 831 runs, p50 3.9, 3.4 and 3.5 ms, p95 20
// to 21.4, and 0.340 to 0.344 CPUs.
func TestRunsBesideABurner(t *testing.T) {
	const short, pool = "threads: 1, run: 500us, sleep: 2ms", "threads: 3, run: {exponential: 2ms}, sleep: {exponential: 12ms}"
	for _, test := range []struct {
		cgroup, runs    string
		counts, p95, on [2]float64 // from, to; on: CPUs
	}{
		{"a", short, [2]float64{1640, 1760}, [2]float64{3.8, 4.6}, [2]float64{0.95, 1.01}},
		{"b", short, [2]float64{1640, 1760}, [2]float64{3.8, 4.6}, [2]float64{0.16, 0.19}},
		{"b", pool, [2]float64{780, 880}, [2]float64{17, 25}, [2]float64{0.32, 0.36}},
	} {
		s := parseText(t, fmt.Sprintf("version: 1\nduration: 5s\nhost: {cpus: 2, hz: 250, kernel: "+
			"\"6.18\"}\ncgroups:\n  a: {cpus: \"0\"}\n  b: {cpus: \"0\"}\n"+
			"workloads:\n  burn: {kind: burn, cgroup: a, threads: 1}\n  runs: {kind: sleep-run, cgroup: %s, %s}\n", test.cgroup, test.runs))
		// What a sleep and a wake-up cost there.
		s.Host.WakeCosts = scenario.WakeCosts{Long: 75e3, Short: 45e3, Busy: 17e3, Delay: 50e3}
		medianOf := func(figure func(o scenario.Outcome) float64) float64 {
			_, median, _ := spread(t, s, figure)
			return median
		}
		within := func(what string, got float64, want [2]float64) {
			if got < want[0] || got > want[1] {
				t.Errorf("%s in cgroup %s: %s %.3g, want %.3g to %.3g", test.runs, test.cgroup, what, got, want[0], want[1])
			}
		}
		within("runs", medianOf(func(o scenario.Outcome) float64 { return float64(o.Workloads["runs"].Count) }), test.counts)
		within("p95", medianOf(func(o scenario.Outcome) float64 { return *o.Workloads["runs"].P95 }), test.p95)
		within("CPUs of its cgroup", medianOf(func(o scenario.Outcome) float64 {
			return o.Cgroups[test.cgroup].UsageSeconds / o.Seconds
		}), test.on)
	}
}

// A sleeper that worked is in its queue until the thread beside it has caught up, so that this one is owed something
// when the quota ends, and comes back first. Then nothing may be left for the sleeper. The kernel itself, 6.18.15 on 16
// CPUs in slow time, has 228 sleeps in 3 s.
func TestASleeperMissesPeriods(t *testing.T) {
	sleeps := func(delay bool) float64 {
		s := parseText(t, "version: 1\nduration: 3s\nhost: {cpus: 16, hz: 250, kernel: \"6.18\", cgroup_version: "+
			"2}\ncgroups:\n  a: {quota: 40ms, period: 10ms}\n"+
			"workloads:\n  burn: {kind: burn, cgroup: a, threads: 16}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 5ms}\n")
		sum := 0.0
		const seeds = 8
		for seed := range uint64(seeds) {
			h, err := newHost(&s, seed+1)
			if err != nil {
				t.Fatal(err)
			}
			h.delay = delay
			h.run()
			sum += float64(h.outcome().Workloads["sleeper"].Count)
		}
		return sum / seeds
	}
	with, without := sleeps(true), sleeps(false)
	t.Logf("%.0f sleeps, %.0f where a sleeper leaves its queue at once", with, without)
	if with < 190 || with > 250 || without < 1.15*with {
		t.Errorf("%.0f sleeps, %.0f where a sleeper leaves its queue at once", with, without)
	}
}
