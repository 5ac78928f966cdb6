package realrun

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Cgroups that no file has; no name in one begins with "_".
const (
	rootName = "_root" // of workloads in the scenario's root
	// restName is of workloads in a cgroup that has a pinned one below it: the CPUs of
	// that one are in its own cpuset.
	restName = "_rest"
)

// testbed is the scenario's cgroups on this host.
type testbed struct {
	sandbox *sandbox.Sandbox
	groups  []*sandbox.Group // as Scenario.Cgroups
	// root has the workloads of the scenario's root. rest has those of cgroups with a
	// pinned one below them, by index of Scenario.Cgroups. nil: there are none.
	root *sandbox.Group
	rest []*sandbox.Group
	cpus cpuset.CPUSet // usable
}

// open makes the cgroups and puts their settings in force. On failure nothing
// is left.
func open(s *scenario.Scenario, o Options) (*testbed, error) {
	h, err := sandbox.Open(sandbox.Options{Host: o.Host, Prefix: Prefix, Scope: o.Scope, Fair: o.Fair})
	if err != nil {
		return nil, err
	}
	b := &testbed{sandbox: h, cpus: h.CPUs()}
	err = checkCPUs(h, s.Host.CPUs)
	if err == nil {
		err = b.make(s)
	}
	if err == nil {
		err = b.set(s)
	}
	if err != nil {
		return nil, errors.Join(err, h.Remove())
	}
	return b, nil
}

func (b *testbed) make(s *scenario.Scenario) error {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		made, err := (*sandbox.Group)(nil), error(nil)
		if c.Parent < 0 {
			made, err = b.sandbox.Group(c.Name)
		} else {
			made, err = b.groups[c.Parent].Group(c.Name)
		}
		if err != nil {
			return err
		}
		b.groups = append(b.groups, made)
	}
	b.rest = make([]*sandbox.Group, len(b.groups))
	for i := range s.Workloads {
		w, err := &s.Workloads[i], error(nil)
		switch {
		case w.Cgroup < 0 && b.root == nil:
			b.root, err = b.sandbox.Group(rootName)
		case w.Cgroup >= 0 && b.rest[w.Cgroup] == nil && !s.CPUsOf(w).Equals(s.Effective(&s.Cgroups[w.Cgroup])):
			b.rest[w.Cgroup], err = b.groups[w.Cgroup].Group(restName)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// set sets limits from the top: v1 refuses a child's above its parent's. It sets CPUs
// from below: v1 refuses to take a CPU from a parent while a child has it.
func (b *testbed) set(s *scenario.Scenario) error {
	for i := range s.Cgroups {
		c := &s.Cgroups[i]
		if c.Weight != scenario.DefaultWeight {
			if err := b.groups[i].SetWeight(uint64(c.Weight)); err != nil {
				return fmt.Errorf("cgroups.%s.weight: %w", c.Name, err)
			}
		}
		if !c.Limit.Limited() {
			continue
		}
		if err := b.groups[i].SetLimit(c.Limit); err != nil {
			return fmt.Errorf("cgroups.%s: %w", c.Name, err)
		}
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if group, cpus := b.of(s, w); w.Cgroup < 0 || group == b.rest[w.Cgroup] {
			if err := group.SetCPUs(cpus); err != nil {
				return fmt.Errorf("workloads.%s: %w", w.Name, err)
			}
		}
	}
	for i := range slices.Backward(s.Cgroups) {
		if err := b.groups[i].SetCPUs(mapped(s.Effective(&s.Cgroups[i]), b.cpus)); err != nil {
			return fmt.Errorf("cgroups.%s.cpus: %w", s.Cgroups[i].Name, err)
		}
	}
	return nil
}

// of is a workload's cgroup, and the CPUs that it may use.
func (b *testbed) of(s *scenario.Scenario, w *scenario.Workload) (*sandbox.Group, cpuset.CPUSet) {
	cpus := mapped(s.CPUsOf(w), b.cpus)
	switch {
	case w.Cgroup < 0:
		return b.root, cpus
	case b.rest[w.Cgroup] != nil:
		return b.rest[w.Cgroup], cpus
	}
	return b.groups[w.Cgroup], cpus
}

// stats reads all cgroups' counters.
func (b *testbed) stats() ([]cgroup.Stat, error) {
	all := make([]cgroup.Stat, len(b.groups))
	for i, group := range b.groups {
		var err error
		if all[i], err = group.Stat(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// named are the cgroups by their names in the scenario.
func (b *testbed) named(s *scenario.Scenario) map[string]cgroup.Group {
	all := map[string]cgroup.Group{}
	for i, group := range b.groups {
		all[s.Cgroups[i].Name] = group.At()
	}
	return all
}
