package forecast

import (
	"math"
	"testing"

	"github.com/unthrottle/unthrottle/cgroup/cgrouptest"
	"github.com/unthrottle/unthrottle/lab/require"
	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/simulate"
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

// The replay of a real recording under the recorded limit comes out as recorded.
func TestRealSelfCheck(t *testing.T) {
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
			for _, note := range l.Notes {
				t.Log(note)
			}
			r, err := simulate.RunReplay(l.Scenario, &l.Replay, simulate.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			c := r.Outcome.Cgroups[l.Scenario.Cgroups[l.Container].Name]
			was := float64(*l.Recorded.ThrottledPeriods)
			t.Logf("throttled periods %d, recorded %.0f; CPU %.3f, recorded %.3f", c.ThrottledPeriods, was, c.UsageSeconds, l.Recorded.CPU.Seconds())
			if l.Recorded.Stopped != nil {
				t.Logf("stopped %.3f, recorded %.3f", *c.StoppedSeconds, l.Recorded.Stopped.Seconds())
			}
			for _, p := range l.Pools {
				for _, w := range p.Workloads {
					now, then := r.Times[w].Response, p.Recorded.Response
					if now.Count() > 0 && then.Count() > 0 {
						t.Logf("%s: %d responses p50 %.2f p99 %.2f max %.2f, recorded %d %.2f %.2f %.2f", p.Name, now.Count(), *now.Quantile(0.5), *now.Quantile(0.99), *now.Max(),
							then.Count(), *then.Quantile(0.5), *then.Quantile(0.99), *then.Max())
					}
				}
			}
			if now := float64(c.ThrottledPeriods); math.Abs(now-was) > 3+0.2*was {
				t.Errorf("%.0f throttled periods, recorded %.0f", now, was)
			}
			if was := l.Recorded.CPU.Seconds(); math.Abs(c.UsageSeconds-was) > 0.05+0.1*was {
				t.Errorf("%.3f s of CPU time, recorded %.3f", c.UsageSeconds, was)
			}
		})
	}
}
