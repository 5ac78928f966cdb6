package latency

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Names of the remedies, in the order of the table. The first is what the others
// are compared with.
const (
	quota  = "quota"                 // the plain limit
	burst  = string(scenario.Burst)  // with a burst as large as the quota
	period = string(scenario.Period) // the same limit over 10 ms
	raise  = string(scenario.Raise)  // 1.5 times the limit
	weight = string(scenario.Weight) // no limit
	pin    = string(scenario.Pin)    // as many CPUs as the limit, no quota
)

// remedies are all variants.
func remedies() []string { return []string{quota, burst, period, raise, weight, pin} }

const (
	burnersPerCPU = 16 // 32 beside a limit of 2, as in seed 003
	sleepLength   = 10 * time.Millisecond
	shortPeriod   = 10 * time.Millisecond
	raised        = 1.5

	group   = "lat"
	sleeper = "sleeper"
)

// limitCPUs is the limit on a host of so many CPUs: 2 as in seed 003, where that
// leaves others some.
func limitCPUs(cpus int) int {
	if cpus < 4 {
		return 1
	}
	return 2
}

// granted is how many CPUs a variant may use on average.
func granted(name string, cpus int) float64 {
	limit := float64(limitCPUs(cpus))
	switch name {
	case raise:
		return raised * limit
	case weight:
		return float64(cpus)
	}
	return limit
}

// scenarioOf is one variant on a host of so many CPUs.
func scenarioOf(name string, cpus int, length time.Duration) (scenario.Scenario, error) {
	rules, err := bandwidth.For(scenario.DefaultKernel)
	if err != nil {
		return scenario.Scenario{}, err
	}
	limit := limitCPUs(cpus)
	c := scenario.Cgroup{
		Name: group, Parent: -1, Weight: scenario.DefaultWeight,
		Limit: bandwidth.Limit{Quota: time.Duration(limit) * bandwidth.DefaultPeriod, Period: bandwidth.DefaultPeriod},
	}
	switch name {
	case burst:
		c.Remedy = &scenario.Remedy{Kind: scenario.Burst, Burst: c.Limit.Quota}
	case period:
		c.Limit = bandwidth.Limit{Quota: time.Duration(limit) * shortPeriod, Period: shortPeriod}
	case raise:
		c.Remedy = &scenario.Remedy{Kind: scenario.Raise, Factor: raised}
	case weight:
		c.Remedy = &scenario.Remedy{Kind: scenario.Weight}
	case pin:
		c.Remedy = &scenario.Remedy{Kind: scenario.Pin, CPUs: limit}
	}
	return scenario.Scenario{
		About: "a sleep beside threads that burn", Duration: length,
		Host:    scenario.Host{CPUs: cpus, HZ: scenario.DefaultHZ, CgroupVersion: 2, Rules: rules, TimerSlack: 50 * time.Microsecond},
		Cgroups: []scenario.Cgroup{c},
		Workloads: []scenario.Workload{
			{Name: "burners", Kind: scenario.Burn, Threads: burnersPerCPU * limit},
			{Name: sleeper, Kind: scenario.Sleeper, Threads: 1, Run: scenario.Fixed(10 * time.Microsecond),
				Sleep: scenario.Fixed(sleepLength)},
		},
	}, nil
}
