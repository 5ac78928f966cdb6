package simulate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// FuzzRun runs whatever parses, for a moment of simulated time.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("../../../examples/scenarios/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{version: 1, host: {cpus: 5, hz: 300, ticks: spread, kernel: "7.2", cgroup_version: 1},
cgroups: {a: {quota: 5ms, period: 7ms, burst: 3ms}, b: {parent: a, quota: 1ms, period: 3ms, cpus: 1-2, weight: 1}, c: {cpus: "4", remedy: {kind: raise, factor: 2}, quota: 1ms}},
workloads: {w: {kind: fib, threads: 7, fast: 3, cgroup: b}, x: {kind: sleeper, threads: 3, cgroup: a, sleep: 1us}, y: {kind: service, cgroup: c, threads: 2, queue: 0, work: {uniform: [1us, 2ms]}, arrivals: {per_second: 5000}}}}`))
	f.Add([]byte(`{version: 1, host: {cpus: 4, kernel: "6.18", hz: continuous}, spike: {at: 5ms, for: 5ms, factor: 9},
cgroups: {a: {quota: 5ms, period: 10ms}, b: {parent: a}, n: {quota: 200ms, remedy: {kind: narrow, credit: 3ms}}, p: {quota: 9ms, remedy: {kind: period, period: 20ms}}},
workloads: {k: {kind: kernel, cgroup: b, threads: 3, run: {uniform: [1us, 9ms]}, sleep: 1ms}, s: {kind: sleep-run, cgroup: n, threads: 9, run: 2ms, sleep: 1ms, phases: [{for: 1ms, factor: 0}, {for: 1ms, factor: 3}]},
w: {kind: service, cgroup: n, io: 2, shared: 64KiB, inflate: 0.5, timeout: 1ms, retries: {max: 2, budget: 0.5, backoff: 0s}, pools: {p: {threads: 3, queue: 3, queues: per-thread}},
classes: {x: {pool: p, work: 1ms, locked: 1, touches: 9, arrivals: {per_second: 9000, burst: 3, gaps: equal}}, y: {work: 1us, arrivals: {at: [0s, 1ms]}}}},
g: {kind: gc, cgroup: n, of: w, threads: {per_limit_cpu: 2}, work: 1ms, requests: 3}}}`))
	f.Add([]byte(`{version: 1, host: {cpus: 4, cgroup_version: 1}, cgroups: {p: {quota: 300ms}, a: {parent: p, quota: 90ms, remedy: {kind: pin, cpus: 2}}, b: {parent: a, remedy: {kind: pin, cpus: 1}}, c: {remedy: {kind: pin, cpus: 1}}},
workloads: {w.threads: {kind: fib, cgroup: p, threads: 3}, w: {kind: burn, cgroup: b, threads: 2}, x: {kind: sleeper, cgroup: a}, y: {kind: burn}, z: {kind: service, cgroup: c, threads: 1, work: 1ms, io: 9, timeout: 1us, arrivals: {per_second: 99999}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("fuzz", data)
		if err != nil || s.Memory() > 16<<20 || s.Host.CPUs > 128 {
			return
		}
		for _, w := range s.Workloads {
			if w.AllThreads() > 200 {
				return
			}
		}
		s.Duration = min(s.Duration, 20*time.Millisecond)
		r, err := Run(s, Options{Seed: 1, Timeline: 2, Explain: true})
		if part := new(Unmodelled); errors.As(err, &part) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range r.Outcome.Cgroups {
			if most := s.Duration.Seconds() * float64(s.Host.CPUs); c.UsageSeconds < 0 || c.UsageSeconds > most+1e-9 ||
				c.ThrottledSeconds > most+1e-9 {
				t.Fatalf("%s in %v: %+v", name, s.Duration, c)
			}
		}
	})
}
