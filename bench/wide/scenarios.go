package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/agreement"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/test/study"
)

// wideScenario is one that ran for real on 16 CPUs under limits of about four.
type wideScenario struct{ name, about, cgroups, workloads string }

var wideScenarios = []wideScenario{
	{"burners", "32 threads burn beside a sleeper", "a: {quota: 400ms}",
		"burn: {kind: burn, cgroup: a, threads: 32}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
	{"pool", "32 threads need 3.6 CPUs on average, now more, now less", "a: {quota: 400ms}",
		"pool: {kind: sleep-run, cgroup: a, threads: 32, run: {exponential: 5ms}, sleep: {exponential: 40ms}}"},
	{"bursts", "16 threads work 20 of 170 ms at once, with a burst", "a: {quota: 200ms, burst: 200ms}",
		"turns: {kind: neighbour, cgroup: a, threads: 16, on: 20ms, off: 150ms}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
	{"short-period", "16 threads burn under a period of 10 ms", "a: {quota: 40ms, period: 10ms}",
		"burn: {kind: burn, cgroup: a, threads: 16}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 5ms}"},
	{"nested", "a pod of 4 CPUs over a container of 2 that burns and one that serves",
		"pod: {quota: 400ms}\n  a: {parent: pod, quota: 200ms}\n  b: {parent: pod}",
		"a-burn: {kind: burn, cgroup: a, threads: 8}\n  " +
			"b-pool: {kind: sleep-run, cgroup: b, threads: 24, run: {exponential: 4ms}, sleep: {exponential: 50ms}}"},
	{"cpuset", "the first with a cpuset of the quota's size too", "a: {quota: 400ms, cpus: \"4-7\"}",
		"burn: {kind: burn, cgroup: a, threads: 32}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
}

// scenarioSeconds is how long each ran, guestHZ is CONFIG_HZ of Debian's kernels, and simulatedSeeds are the simulated runs of each.
const scenarioSeconds, guestHZ, simulatedSeeds = 3, 250, 20

// parse gives the scenario on a host.
func (w wideScenario) parse(at host) (scenario.Scenario, error) {
	return scenario.Parse(w.name, fmt.Appendf(nil, "version: 1\nduration: %v\nhost: {cpus: %d, hz: %d, kernel: %q, cgroup_version: 2}\n"+
		"cgroups:\n  %s\nworkloads:\n  %s\n", scenarioSeconds*time.Second, at.CPUs, guestHZ, kernel, w.cgroups, w.workloads))
}

// outcomes are the real runs of a scenario on a host, and what wake-ups cost there.
func (p page) outcomes(at host, name string) (outcomes []scenario.Outcome, costs []scenario.WakeCosts) {
	for repeat := 1; repeat <= repeats; repeat++ {
		if r := p.have.find(piece{Machine: at.machine(), Kind: ran, Edition: edition, Scenario: name, Seconds: scenarioSeconds,
			Repeat: repeat}); r != nil {
			outcomes = append(outcomes, *r.Outcome)
		}
		if r := p.have.find(piece{Machine: at.machine(), Kind: paid, Edition: edition, Seconds: 0.5, Repeat: repeat}); r != nil {
			costs = append(costs, *r.Costs)
		}
	}
	return outcomes, costs
}

// simulated is the simulator beside the guest's kernel.
type simulated struct {
	Agree, All int
	Rows       []string
}

// Simulated are the scenarios that ran at least twice.
func (p page) Simulated() (s simulated, err error) {
	for _, w := range wideScenarios {
		for _, at := range []host{wide, slower} {
			real, costs := p.outcomes(at, w.name)
			if len(real) < 2 {
				continue
			}
			of, err := w.parse(at)
			if err != nil {
				return s, err
			}
			of.Host.WakeCosts = agreement.MedianCosts(costs)
			var runs []scenario.Outcome
			for seed := range uint64(simulatedSeeds) {
				r, err := simulate.Run(of, simulate.Options{Seed: seed + 1})
				if err != nil {
					return s, err
				}
				runs = append(runs, r.Outcome)
			}
			j := agreement.JudgeScenario(of, runs, real)
			var misses []string
			for _, v := range j.Verdicts {
				if !v.Agrees {
					low, high := v.Range()
					misses = append(misses, fmt.Sprintf("%s of %s %.3g, %.3g to %.3g", v.Figure, v.Of, v.Simulated, low, high))
				}
			}
			agree := len(j.Verdicts) - len(misses)
			if at == wide {
				s.Agree, s.All = s.Agree+agree, s.All+len(j.Verdicts)
			}
			s.Rows = append(s.Rows, study.Row(w.name, w.about, at.K, len(real), fmt.Sprintf("%d of %d", agree, len(j.Verdicts)),
				strings.Join(misses, "; "), fmt.Sprintf("%.0f %%", 100*j.SelfAll)))
		}
	}
	return s, nil
}

// Burners are the rows of burning threads beside a sleeper, with the quota and with a cpuset of its size too, at two K.
func (p page) Burners() (rows []string) {
	for _, of := range []struct{ name, limit string }{{"burners", "quota"}, {"cpuset", "quota, and a cpuset of its size"}} {
		for _, at := range []host{faster, wide} {
			outcomes, _ := p.outcomes(at, of.name)
			var throttled []string
			var p90, p99 []float64
			for _, o := range outcomes {
				c, sleeps := o.Cgroups["a"], o.Workloads["sleeper"].Latencies
				throttled = append(throttled, fmt.Sprintf("%d of %d", c.ThrottledPeriods, c.Periods))
				if sleeps.P90 != nil && sleeps.P99 != nil {
					p90, p99 = append(p90, *sleeps.P90), append(p99, *sleeps.P99)
				}
			}
			if len(p90) > 0 {
				rows = append(rows, study.Row(of.limit, at.K, len(outcomes), strings.Join(throttled, ", "), scatter(p90), scatter(p99)))
			}
		}
	}
	return rows
}

// scatter is the median of runs with the least and the largest.
func scatter(v []float64) string {
	s := study.SpreadOf(v)
	return fmt.Sprintf("%.0f (%.0f to %.0f)", s.Median, s.Low, s.High)
}

// unread are the pieces of records that the page did not ask for.
func (r *records) unread() (pieces []piece) {
	for _, one := range r.All {
		if !r.asked[one.Piece] && !slices.Contains(pieces, one.Piece) {
			pieces = append(pieces, one.Piece)
		}
	}
	return pieces
}
