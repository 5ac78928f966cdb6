package realrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

func TestMapped(t *testing.T) {
	if got := mapped(cpuset.New(0, 2), cpuset.New(3, 5, 9)); !got.Equals(cpuset.New(3, 9)) {
		t.Error(got)
	}
}

func TestNotReproduced(t *testing.T) {
	s := scenario.Scenario{Cgroups: []scenario.Cgroup{{Name: "a"}, {Name: "b", Mems: cpuset.New(1)}}}
	s.Host.Topology.ThreadsPerCore = 1
	if got := notReproduced(&s); len(got) != 1 || !strings.Contains(got[0], "cgroups.b.mems") {
		t.Errorf("%q", got)
	}
	s.Host.Topology.ThreadsPerCore = 2
	if got := notReproduced(&s); len(got) != 2 || !strings.Contains(got[0], "the host's own topology is used") {
		t.Errorf("%q", got)
	}
}

// A generator that was late by more than 5 ms with over 1 % of the requests, or used
// most of a CPU, has measured itself: counts stay, latencies are not measured.
func TestAGeneratorThatWasTheBottleneck(t *testing.T) {
	figure := 3.0
	sharded := scenario.Workload{Name: "web-1", Shards: &scenario.Shards{Name: "web", Balance: balance.Rule{Shards: 2}}}
	for name, test := range map[string]struct {
		own      loadgen.Own
		measured bool
		says     string
	}{
		"on time":      {loadgen.Own{Sends: 1000, LateSends: 10, RealTime: true, Seconds: 1, CPUSeconds: 0.7}, true, ""},
		"no real time": {loadgen.Own{Sends: 1000}, true, "did not get real-time priority"},
		"late": {loadgen.Own{Sends: 1000, LateSends: 11, LateAfter: lateAfter, RealTime: true}, false,
			"late by more than 5ms with 11 of 1000"},
		"no CPU of its own":  {loadgen.Own{Sends: 1000, RealTime: true, Seconds: 1, CPUSeconds: 0.9}, false, "it was at its own end"},
		"late, no real time": {loadgen.Own{Sends: 10, LateSends: 5, LateAfter: lateAfter}, false, "it lacked CPU itself"},
	} {
		out := map[string]scenario.WorkloadOutcome{}
		for _, of := range []string{"web", "web-1", "web-2", "gc"} {
			out[of] = scenario.WorkloadOutcome{
				Latencies: scenario.Latencies{Count: 7, P50: &figure, P90: &figure, P95: &figure, P99: &figure, Max: &figure}}
		}
		notes := judge(&sharded, test.own, out)
		if text := strings.Join(notes, "; "); !strings.Contains(text, test.says) || (text == "") != (test.says == "") {
			t.Errorf("%s: %q", name, text)
		}
		for of, w := range out {
			has := w.P50 != nil && w.P90 != nil && w.P95 != nil && w.P99 != nil && w.Max != nil
			none := w.P50 == nil && w.P90 == nil && w.P95 == nil && w.P99 == nil && w.Max == nil
			if want := test.measured || of == "gc"; has != want || none == want || w.Count != 7 {
				t.Errorf("%s: %s: %+v", name, of, w)
			}
		}
	}
}

func TestPlannedPhases(t *testing.T) {
	s := time.Second
	for _, test := range []struct {
		phases []scenario.Phase
		length time.Duration
		want   []time.Duration
	}{
		{nil, 3 * s, []time.Duration{3 * s}},
		{[]scenario.Phase{{For: s, Factor: 1}, {For: s, Factor: 2}}, 5 * s, []time.Duration{s, 4 * s}},         // the last one lasts
		{[]scenario.Phase{{For: 4 * s, Factor: 1}, {For: 4 * s, Factor: 2}}, 5 * s, []time.Duration{4 * s, s}}, // cut
		{[]scenario.Phase{{For: 4 * s, Factor: 1}, {For: 4 * s, Factor: 2}}, 3 * s, []time.Duration{3 * s}},
	} {
		got := plannedPhases(test.phases, test.length)
		if len(got) != len(test.want) {
			t.Errorf("%v in %v: %+v", test.phases, test.length, got)
			continue
		}
		for i := range got {
			if got[i].For != test.want[i] || !got[i].Measured {
				t.Errorf("%v in %v: %+v", test.phases, test.length, got)
			}
		}
	}
}

func TestRecovery(t *testing.T) {
	phases := []scenario.Phase{{For: time.Second, Factor: 1}, {For: time.Second, Factor: 2}, {For: 3 * time.Second, Factor: 1}}
	line := func(good ...uint32) (results []loadgen.SlotResult) {
		for _, g := range good {
			for range 4 {
				results = append(results, loadgen.SlotResult{Intended: 10, Good: g})
			}
		}
		return results
	}
	for name, test := range map[string]struct {
		phases []scenario.Phase
		line   []loadgen.SlotResult
		want   float64 // -1: nil
	}{
		"at once":           {phases, line(10, 3, 10, 10, 10), 0},
		"after a second":    {phases, line(10, 3, 3, 10, 10), 1},
		"never":             {phases, line(10, 3, 3, 3, 3), -1},
		"falls back":        {phases, line(10, 3, 10, 3, 10), 2},
		"no fall":           {phases[:2], line(10, 10, 10), -1},
		"a nearly good one": {phases, line(10, 3, 9, 9, 9), 0},
		"empty":             {phases, nil, -1},
	} {
		got := recovery(test.phases, test.line)
		if (got == nil) != (test.want < 0) || got != nil && *got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAvailableMemory(t *testing.T) {
	if n, err := availableMemory("MemTotal:  8 kB\nMemAvailable:    2048 kB\nx: 1\n"); err != nil || n != 2<<20 {
		t.Error(n, err)
	}
	for _, bad := range []string{"", "MemAvailable: many kB\n", "MemAvailable: -5 kB\n", "MemFree: 5 kB\n"} {
		if _, err := availableMemory(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// A quantile is the least that a share of the pauses do not exceed.
func TestPaused(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, test := range map[string]struct {
		ms                      []float64
		p50, p90, p95, p99, max float64
	}{
		"one":     {[]float64{4}, 4, 4, 4, 4, 4},
		"two":     {[]float64{4, 1}, 1, 4, 4, 4, 4},
		"four":    {[]float64{4, 1, 3, 2}, 2, 4, 4, 4, 4},
		"hundred": {hundred, 50, 90, 95, 99, 100},
	} {
		got := paused(7, test.ms)
		if got.Count != 7 || *got.P50 != test.p50 || *got.P90 != test.p90 || *got.P95 != test.p95 ||
			*got.P99 != test.p99 || *got.Max != test.max {
			t.Errorf("%s: %v %v %v %v %v", name, *got.P50, *got.P90, *got.P95, *got.P99, *got.Max)
		}
	}
	if none := paused(0, nil); none.P50 != nil || none.Max != nil || collected(service.GCStats{}).Max != nil {
		t.Errorf("of nothing: %+v", none)
	}
	// Only the first pauses are kept, and the longest.
	if got := collected(service.GCStats{Collections: 3, LongestMs: 9, PausesMs: []float64{1, 2}}); got.Count != 3 ||
		*got.P50 != 1 || *got.Max != 9 {
		t.Errorf("%+v", got)
	}
}

// What a load generator would refuse is refused before the run, and what it can do is not.
func TestLoadsAreCheckedBefore(t *testing.T) {
	for name, test := range map[string]struct{ top, keys, want string }{
		"an hour":       {"duration: 1h", "arrivals: {per_second: 1}", ""},
		"long timeouts": {"duration: 1h", "arrivals: {per_second: 1}, timeout: 1h", ""},
		"a late start":  {"duration: 1h", "arrivals: {per_second: 1}, start: 59m", ""},
		"a spike": {"spike: {at: 1s, for: 1s, factor: 1000}", "arrivals: {per_second: 2000}",
			"workloads.web: load: 2000000 requests per second: 1000000 are allowed"},
		"the most at all": {"duration: 2s", "arrivals: {per_second: 1000000}", ""},
	} {
		s := parsed(t, "version: 1\nhost: {cpus: 1}\n"+test.top+
			"\nworkloads: {web: {kind: service, threads: 1, work: 1ms, "+test.keys+"}}\n")
		err := checkLoads(&s)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// I/O threads are threads, and calls have a buffer each.
func TestWhatARunNeeds(t *testing.T) {
	web := "version: 1\nhost: {cpus: 1}\nworkloads: {web: {kind: service, io: IO, threads: 1, work: 1ms, arrivals: {per_second: 1}}}\n"
	few, many := parsed(t, strings.Replace(web, "IO", "1", 1)), parsed(t, strings.Replace(web, "IO", "4096", 1))
	if err := checkSupported(&few, false); err != nil {
		t.Error(err)
	}
	if err := checkSupported(&many, false); err == nil || !strings.Contains(err.Error(), "more than 4096 threads") {
		t.Errorf("4096 I/O threads and one: %v", err)
	}
	if more := neededMemory(&many) - neededMemory(&few); more != 4095*perThread {
		t.Errorf("4095 I/O threads more take %d bytes", more)
	}
	calls := parsed(t, "version: 1\nhost: {cpus: 1}\nworkloads: {k: {kind: kernel, threads: 1000, run: 1ms, sleep: 1ms}}\n")
	if got := neededMemory(&calls); got < 1000<<20 {
		t.Errorf("1000 threads with a buffer of 1 MiB each take %d MiB", got>>20)
	}
}

// On v2 a cgroup has processes or cgroups.
func TestNoInternalProcesses(t *testing.T) {
	s := parsed(t, "version: 1\nhost: {cpus: 1}\ncgroups: {a: {}, b: {parent: a}}\nworkloads: {w: {kind: burn, cgroup: a}}\n")
	if err := checkSupported(&s, false); err != nil {
		t.Errorf("v1: %v", err)
	}
	if err := checkSupported(&s, true); err == nil || !strings.Contains(err.Error(), "its parent a has workload w") {
		t.Errorf("v2: %v", err)
	}
}

// Where the generator was the bottleneck there are counts and no latencies.
func TestWithoutLatencies(t *testing.T) {
	v := 5.
	w := withoutLatencies(scenario.WorkloadOutcome{Latencies: scenario.Latencies{Count: 7, P50: &v, Max: &v},
		RecoverySeconds: &v, Classes: map[string]scenario.Latencies{"get": {Count: 3, P99: &v}}})
	if w.Count != 7 || w.P50 != nil || w.Max != nil || w.RecoverySeconds != nil || w.Classes["get"].P99 != nil ||
		w.Classes["get"].Count != 3 {
		t.Errorf("%+v", w)
	}
}
