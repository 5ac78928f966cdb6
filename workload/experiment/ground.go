package experiment

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/workload/home"
)

// rootName is the cgroup of workloads in the scenario's root; no name in a file
// begins with "_".
const rootName = "_root"

// ground is the scenario's cgroups on this host.
type ground struct {
	home   *home.Home
	groups []*home.Group // as Scenario.Cgroups
	root   *home.Group   // nil: no workload is in the root
	cpus   cpuset.CPUSet // usable
}

// open makes the cgroups and puts their settings in force. On failure nothing
// is left.
func open(s *scenario.Scenario, o Options) (*ground, error) {
	h, err := home.Open(home.Options{Host: o.Host, Prefix: Prefix, Scope: o.Scope, Fair: o.Fair})
	if err != nil {
		return nil, err
	}
	g := &ground{home: h, cpus: h.CPUs()}
	err = enough(h, s.Host.CPUs)
	if err == nil {
		err = g.make(s)
	}
	if err == nil {
		err = g.set(s)
	}
	if err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return g, nil
}

func (g *ground) make(s *scenario.Scenario) error {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		made, err := (*home.Group)(nil), error(nil)
		if c.Parent < 0 {
			made, err = g.home.Group(c.Name)
		} else {
			made, err = g.groups[c.Parent].Group(c.Name)
		}
		if err != nil {
			return err
		}
		g.groups = append(g.groups, made)
	}
	if slices.ContainsFunc(s.Workloads, func(w scenario.Workload) bool { return w.Cgroup < 0 }) {
		var err error
		g.root, err = g.home.Group(rootName)
		return err
	}
	return nil
}

// set puts limits in force from the top, for v1 takes no child's above its
// parent's, and CPUs from below, for v1 takes no parent's below its child's.
func (g *ground) set(s *scenario.Scenario) error {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		if c.Weight != scenario.DefaultWeight {
			if err := g.groups[i].SetWeight(uint64(c.Weight)); err != nil {
				return fmt.Errorf("cgroups.%s.weight: %w", c.Name, err)
			}
		}
		if !c.Limit.Limited() {
			continue
		}
		limit := cgroup.Limit{Quota: c.Limit.Quota, Period: c.Limit.Period, Burst: c.Limit.Burst}
		if err := g.groups[i].SetLimit(limit); err != nil {
			return fmt.Errorf("cgroups.%s: %w", c.Name, err)
		}
	}
	for i := range slices.Backward(s.Cgroups) {
		if err := g.groups[i].SetCPUs(mapped(s.Effective(&s.Cgroups[i]), g.cpus)); err != nil {
			return fmt.Errorf("cgroups.%s.cpus: %w", s.Cgroups[i].Name, err)
		}
	}
	if g.root == nil {
		return nil
	}
	return g.root.SetCPUs(mapped(rootCPUs(s), g.cpus))
}

// rootCPUs are those of the root's workloads: all but pinned cgroups' own.
func rootCPUs(s *scenario.Scenario) cpuset.CPUSet { return s.Host.All().Difference(s.Host.Reserved) }

// of is a workload's cgroup, and the CPUs that it may use.
func (g *ground) of(s *scenario.Scenario, w *scenario.Workload) (*home.Group, cpuset.CPUSet) {
	if w.Cgroup < 0 {
		return g.root, mapped(rootCPUs(s), g.cpus)
	}
	return g.groups[w.Cgroup], mapped(s.Effective(&s.Cgroups[w.Cgroup]), g.cpus)
}

// stats reads all cgroups' counters.
func (g *ground) stats() ([]cgroup.Stat, error) {
	all := make([]cgroup.Stat, len(g.groups))
	for i, group := range g.groups {
		var err error
		if all[i], err = group.Stat(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// named are the cgroups by their names in the scenario.
func (g *ground) named(s *scenario.Scenario) map[string]cgroup.Group {
	all := map[string]cgroup.Group{}
	for i, group := range g.groups {
		all[s.Cgroups[i].Name] = group.At()
	}
	return all
}
