package forecast

import (
	"math"
	"testing"

	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// realScenarios are throttled, each by another shape of load.
var realScenarios = map[string]string{
	"pool": `version: 1
duration: 2s
host: {cpus: 2}
cgroups: {app: {quota: 50ms}}
workloads:
  pool: {kind: sleep-run, cgroup: app, threads: 4, run: {exponential: 8ms}, sleep: {exponential: 60ms}}
`,
	"burners": `version: 1
duration: 2s
host: {cpus: 2}
cgroups: {app: {quota: 100ms}}
workloads:
  burners: {kind: burn, cgroup: app, threads: 4}
  sleeper: {kind: sleeper, cgroup: app, sleep: 10ms}
`,
	"service": `version: 1
duration: 2s
host: {cpus: 2}
cgroups: {app: {quota: 20ms}}
workloads:
  web:
    kind: service
    cgroup: app
    pools: {http: {threads: 4}}
    classes:
      get: {pool: http, work: {exponential: 2ms}, arrivals: {per_second: 100, burst: 10}}
`,
}

// The replay of a real recording under the recorded limit has the recorded figures.
func TestRealSelfCheck(t *testing.T) {
	require.Alone(t, "a replay with the recording")
	require.Root(t)
	require.BPF(t)
	require.CPUs(t, 2)
	tree := cgrouptest.New(t)
	tree.Make("inner")
	for name, text := range realScenarios {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Parse(name, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			l := record(t, tree, s, 1)
			for _, note := range l.notes {
				t.Log(note)
			}
			r, err := l.run(trial{remedy: Remedy{Name: None}, load: 1, seed: 1})
			if err != nil || r.refused != nil {
				t.Fatal(err, r.refused)
			}
			was := float64(*l.recorded.throttledPeriods)
			t.Logf("throttled periods %d, recorded %.0f; CPU %v, recorded %v", r.throttledPeriods, was, r.cpu, l.recorded.cpu)
			if l.recorded.stopped != nil {
				t.Logf("stopped %v, recorded %v", r.stopped, *l.recorded.stopped)
			}
			for i, p := range l.Pools {
				if now, then := r.times[i].Response, p.recorded.Response; now.Count() > 0 && then.Count() > 0 {
					t.Logf("%s: %d responses p50 %.2f p99 %.2f max %.2f, recorded %d %.2f %.2f %.2f", p.Name,
						now.Count(), *now.Quantile(0.5), *now.Quantile(0.99), *now.Max(),
						then.Count(), *then.Quantile(0.5), *then.Quantile(0.99), *then.Max())
				}
			}
			if now := float64(r.throttledPeriods); math.Abs(now-was) > 3+0.2*was {
				t.Errorf("%.0f throttled periods, recorded %.0f", now, was)
			}
			if now, was := r.cpu.Seconds(), l.recorded.cpu.Seconds(); math.Abs(now-was) > 0.05+0.1*was {
				t.Errorf("%.3f s of CPU time, recorded %.3f", now, was)
			}
		})
	}
}
