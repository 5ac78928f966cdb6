package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bench/accuracy"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// wideScenario is a scenario on 16 CPUs with limits of about four.
type wideScenario struct{ name, about, cgroups, workloads string }

var wideScenarios = []wideScenario{
	{"burners", "32 threads burn beside a sleeper: Uber's experiment", "a: {quota: 400ms}",
		"burn: {kind: burn, cgroup: a, threads: 32}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
	{"pool", "32 threads need 3.6 CPUs on average, now more, now less", "a: {quota: 400ms}",
		"pool: {kind: sleep-run, cgroup: a, threads: 32, run: {exponential: 5ms}, sleep: {exponential: 40ms}}"},
	{"bursts", "16 threads work 20 of 170 ms at once, with a burst", "a: {quota: 200ms, burst: 200ms}",
		"turns: {kind: neighbour, cgroup: a, threads: 16, on: 20ms, off: 150ms}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
	{"short-period", "16 threads burn under a period of 10 ms", "a: {quota: 40ms, period: 10ms}",
		"burn: {kind: burn, cgroup: a, threads: 16}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 5ms}"},
	{"nested", "a pod of 4 CPUs over a container of 2 that burns and one that serves", "pod: {quota: 400ms}\n  a: {parent: pod, quota: 200ms}\n  b: {parent: pod}",
		"a-burn: {kind: burn, cgroup: a, threads: 8}\n  b-pool: {kind: sleep-run, cgroup: b, threads: 24, run: {exponential: 4ms}, sleep: {exponential: 50ms}}"},
	{"cpuset", "the first with a cpuset of the quota's size too", "a: {quota: 400ms, cpus: \"4-7\"}",
		"burn: {kind: burn, cgroup: a, threads: 32}\n  sleeper: {kind: sleeper, cgroup: a, run: 20us, sleep: 10ms}"},
}

// scenarioRepeats are the real runs of each scenario: with fewer than three the kernel's agreement with itself is a coin.
const scenarioRepeats = 3

// guestHZ is CONFIG_HZ of Debian's kernels.
const guestHZ = 250

// scenarioOf is the scenario of a piece.
func scenarioOf(p piece) (scenario.Scenario, error) {
	i := slices.IndexFunc(wideScenarios, func(w wideScenario) bool { return w.name == p.Scenario })
	if i < 0 {
		return scenario.Scenario{}, fmt.Errorf("no scenario %q", p.Scenario)
	}
	w := wideScenarios[i]
	return scenario.Parse(w.name, fmt.Appendf(nil, "version: 1\nduration: %v\nhost: {cpus: %d, hz: %d, kernel: %q, cgroup_version: 2}\ncgroups:\n  %s\nworkloads:\n  %s\n",
		time.Duration(p.Seconds*float64(time.Second)), p.Machine.CPUs, guestHZ, p.Machine.Kernel, w.cgroups, w.workloads))
}

func scenarioPiece(h host, name string, repeat int) piece {
	return piece{Machine: h.machine(), Kind: real, Edition: edition, Scenario: name, Seconds: scenarioSeconds, Repeat: repeat}
}

// doubted are scenarios whose real figures may be the emulator's slowness, which is less at a larger K. There they run twice, too.
var doubted = []string{"bursts", "nested"}

const doubtedRepeats = 2

func costsPiece(h host, repeat int) piece {
	return piece{Machine: h.machine(), Kind: costs, Edition: edition, Seconds: 0.5, Repeat: repeat}
}

// missingScenarios are the scenarios that can be run next: each once, then each again, and then those that are doubted.
func missingScenarios(have *records) (all []piece) {
	add := func(p piece) {
		if have.wanted(p) {
			all = append(all, p)
		}
	}
	for repeat := 1; repeat <= scenarioRepeats; repeat++ {
		add(costsPiece(wide, repeat))
		for _, w := range wideScenarios {
			add(scenarioPiece(wide, w.name, repeat))
		}
	}
	for repeat := 1; repeat <= doubtedRepeats; repeat++ {
		add(costsPiece(slower, repeat))
		for _, name := range doubted {
			add(scenarioPiece(slower, name, repeat))
		}
	}
	return all
}

// simulatedSeeds are the simulated runs of each scenario.
const simulatedSeeds = 20

// judgement compares a scenario's runs on a host with the simulator's; none where there are fewer than two.
func judgement(have *records, h host, w wideScenario) (j accuracy.Judgement, runs int, err error) {
	var outcomes []scenario.Outcome
	var paid []scenario.WakeCosts
	for repeat := 1; repeat <= scenarioRepeats; repeat++ {
		if r := have.find(scenarioPiece(h, w.name, repeat)); r != nil {
			outcomes = append(outcomes, *r.Outcome)
		}
		if r := have.find(costsPiece(h, repeat)); r != nil {
			paid = append(paid, *r.Costs)
		}
	}
	if len(outcomes) < 2 {
		return j, len(outcomes), nil
	}
	s, err := scenarioOf(scenarioPiece(h, w.name, 1))
	if err != nil {
		return j, 0, err
	}
	s.Host.WakeCosts = accuracy.MedianCosts(paid)
	var simulated []scenario.Outcome
	for seed := range uint64(simulatedSeeds) {
		r, err := simulate.Run(s, simulate.Options{Seed: seed + 1})
		if err != nil {
			return j, 0, err
		}
		simulated = append(simulated, r.Outcome)
	}
	return accuracy.JudgeScenario(s, simulated, outcomes), len(outcomes), nil
}
