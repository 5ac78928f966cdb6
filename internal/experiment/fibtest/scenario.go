package fibtest

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

const (
	period = bandwidth.DefaultPeriod
	// quota is fibtest's; smallQuota shows more where CPUs are few.
	quota, smallQuota = 10 * time.Millisecond, 5 * time.Millisecond
	// fewCPUs is from how many on smallQuota is not needed.
	fewCPUs = 8
	// slowRun is about what fibtest's 100 iterations take, with the wake-up.
	slowRun, slowSleep = 10 * time.Microsecond, 10 * time.Millisecond
	cgroupName         = "fibtest"
)

// Kernels that stand for the two behaviours in the simulator.
const (
	affectedKernel, fixedKernel = "4.19", "5.15"
)

// variant is one combination that is run.
type variant struct {
	threads int
	quota   time.Duration
}

// variants for a number of CPUs: one thread alone says whether the host has the
// time; then all CPUs.
func variants(cpus int) []variant {
	all := []variant{{1, quota}, {cpus, quota}}
	if cpus < fewCPUs {
		all = append(all, variant{cpus, smallQuota})
	}
	return all
}

// scenarioOf is one variant on a host.
func scenarioOf(a variant, cpus int, length time.Duration, kernel string, hz int) (scenario.Scenario, error) {
	rules, err := bandwidth.For(kernel)
	if err != nil {
		return scenario.Scenario{}, err
	}
	s := scenario.Scenario{
		About: "fibtest", Duration: length,
		Host: scenario.Host{CPUs: cpus, CgroupVersion: 2, Rules: rules, TimerSlack: 50 * time.Microsecond,
			UnthrottleIPI: 2 * time.Microsecond},
		Cgroups: []scenario.Cgroup{{
			Name: cgroupName, Parent: -1, Weight: scenario.DefaultWeight, Limit: bandwidth.Limit{Quota: a.quota, Period: period},
		}},
		Workloads: []scenario.Workload{{
			Name: cgroupName, Kind: scenario.Fib, Cgroup: 0, Threads: a.threads, Fast: 1,
			Run: scenario.Fixed(slowRun), Sleep: scenario.Fixed(slowSleep),
		}},
	}
	s.Host.SetHZ(fmt.Sprint(hz))
	return s, nil
}

// Range of shares of the quota.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// expected simulates a variant under one behaviour at the host's tick rate, with
// several seeds: the phases of ticks and periods are not known.
func expected(a variant, cpus int, kernel string, hz int) (Range, error) {
	const seeds, length = 7, 2 * time.Second
	var r Range
	s, err := scenarioOf(a, cpus, length, kernel, hz)
	if err != nil {
		return r, err
	}
	for seed := range uint64(seeds) {
		result, err := simulate.Run(s, simulate.Options{Seed: seed + 1})
		if err != nil {
			return r, err
		}
		share := shareOf(a, result.Outcome.Cgroups[cgroupName])
		if seed == 0 {
			r = Range{share, share}
		}
		r.Low, r.High = min(r.Low, share), max(r.High, share)
	}
	return r, nil
}

// tickRate is the scheduler's ticks per second: the coarse clocks go from tick to
// tick, and their resolution says how far (kernel/time/posix-timers.c).
func tickRate() int {
	var ts unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &ts) != nil || ts.Nano() <= 0 {
		return scenario.DefaultHZ
	}
	return int(time.Second.Nanoseconds() / ts.Nano())
}

// shareOf is the used share of the quota of all periods.
func shareOf(a variant, c scenario.CgroupOutcome) float64 {
	if c.Periods == 0 {
		return 0
	}
	return c.UsageSeconds / (float64(c.Periods) * a.quota.Seconds())
}
