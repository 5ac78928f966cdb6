package simulate

import (
	"testing"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// loaded is service-pools under more or less load, of each class.
func loaded(t *testing.T, factor float64, replace ...string) scenario.Scenario {
	s := parse(t, "service-pools", replace...)
	s.Duration *= 2 // bursts are few
	classes := s.Workloads[0].Server.Classes
	for i := range classes {
		classes[i].Arrivals.PerSecond *= factor
	}
	return s
}

// resized are pools that together, with the I/O threads, exceed the limit of 20
// CPUs by no more than work is waiting for each.
var resized = []string{
	"http: {threads: {per_host_cpu: 2}}", "http: {threads: 12}",
	"offload: {threads: {per_host_cpu: 2}}", "offload: {threads: 8}",
	"eventbus: {threads: {per_host_cpu: 2}}", "eventbus: {threads: 4}",
}

// What seed "The container throttling problem" reports: a service whose pools
// are sized by the host misses its objective (here: 99 of 100 gets within 20 ms,
// ten times their work, and all requests within the timeout) at some 40 % of its
// quota; with small pools it holds 1.6 to 2 times that load, and at the old load
// latency is about 20 % lower.
func TestServicePools(t *testing.T) {
	const objective = 20
	seeds := uint64(require.Cases(t, 3, 1))
	type figures struct{ use, p90, p99, failed float64 }
	held := func(s scenario.Scenario) figures {
		var runs []scenario.Outcome
		for seed := 4 - seeds; seed <= 3; seed++ {
			runs = append(runs, run(t, s, seed))
		}
		o := scenario.Quantile(runs, 0.5)
		web := o.Workloads["web"]
		get := web.Classes["get"]
		return figures{o.Cgroups["service"].UsageSeconds / o.Seconds / 20, *get.P90, *get.P99, float64(*web.Failed)}
	}
	for _, test := range []struct {
		name  string
		s     scenario.Scenario
		holds bool
		low   float64 // of the mean use
		high  float64
	}{
		{"below the load at which it misses", loaded(t, 0.8), true, 0.28, 0.36},
		{"at 35 to 50 % of the quota", loaded(t, 1.25), false, 0.35, 0.505},
		{"resized, 1.6 times the load", loaded(t, 1.6, resized...), true, 0.6, 0.68},
		{"resized, 2.6 times the load", loaded(t, 2.6, resized...), false, 0.9, 1.01},
		{"without bursts", loaded(t, 1.25, ", burst: 50", "", ", burst: 100", ""), true, 0.45, 0.53},
		{"without a limit", loaded(t, 1.25, "quota: 2s", "quota: 4.8s"), true, 0.42, 0.53},
		{"without shared data and locks", loaded(t, 1.25, ", touches: 100, locked: 0.001", "", ", touches: 500", ""), false, 0.42, 0.53},
	} {
		f := held(test.s)
		t.Logf("%-36s %.2f of the quota, p90 %.1f, p99 %.1f ms, %.0f failed", test.name, f.use, f.p90, f.p99, f.failed)
		if holds := f.p99 <= objective && f.failed == 0; holds != test.holds || f.use < test.low || f.use > test.high {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
	old, small := held(loaded(t, 1)), held(loaded(t, 1, resized...))
	t.Logf("at the old load p90 is %.1f ms, resized %.1f", old.p90, small.p90)
	if gain := 1 - small.p90/old.p90; gain < 0.12 || gain > 0.28 {
		t.Errorf("p90 of gets: %.1f, resized %.1f ms: %.0f %% less", old.p90, small.p90, 100*gain)
	}
}
