package forecast

import (
	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Setting returns what a remedy leaves in force for a container that lies below no other limit, on a host of so many CPUs:
// its limit, and how many CPUs it may use (0: all). The error says why it cannot be in force.
func (r Remedy) Setting(l bandwidth.Limit, cpus int) (bandwidth.Limit, int, error) {
	rules, err := bandwidth.For(scenario.DefaultKernel)
	if err != nil {
		return l, 0, err
	}
	load := Load{recordedScenario: scenario.Scenario{
		Host:    scenario.Host{CPUs: cpus, HZ: scenario.DefaultHZ, CgroupVersion: 2, Rules: rules},
		Cgroups: []scenario.Cgroup{{Name: "container", Parent: -1, Weight: scenario.DefaultWeight, Limit: l}},
	}}
	s, err := load.scenarioWith(r)
	if err != nil {
		return l, 0, err
	}
	c := s.Cgroups[0]
	return c.Limit, max(c.Width, c.CPUs.Size()), nil
}
