package remedy

import (
	"math"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// systemSlices are where the host's own processes live: what is in them, and in
// no container, needs CPU in proportion to the load (seed 002).
var systemSlices = []string{"system.slice", "init.scope", "user.slice"}

// reserveHeadroom is how much more than what the host's own processes were seen
// to use is kept for them: the window is short, and they must not wait.
const reserveHeadroom = 1.5

// reserve are the CPUs that stay the system's: those asked for, else those that
// its use asks for, and those that its slices are confined to (ConfineSystem).
func (p *planner) reserve() cpuset.CPUSet {
	if p.r.Reserve != nil {
		return *p.r.Reserve
	}
	return p.measuredReserve().Union(p.f.systemConfined())
}

// measuredReserve is placement.Reserve and, where the host's own processes use
// more, further cores beside it until they hold reserveHeadroom times that use;
// at most a quarter of the machine, so that a busy minute does not take it all.
func (p *planner) measuredReserve() cpuset.CPUSet {
	allowed := p.f.Sets[p.top()].Effective
	kept := placement.Reserve(p.f.Machine, allowed)
	able := allowed.Intersection(p.f.Machine.Online()).Difference(p.f.Machine.Isolated())
	want := min(int(math.Ceil(reserveHeadroom*p.f.systemUse()-epsilon)), able.Size()/4)
	// CPUs with an owner cannot be kept; the next cores are.
	for _, h := range p.f.Held {
		able = able.Difference(h.Withdrawn())
	}
	for _, id := range able.List() {
		if kept.Size() >= want {
			break
		}
		core := cpuset.New(id)
		if c, ok := p.f.Machine.CPU(id); ok && c.Core != topology.Unknown {
			core = p.f.Machine.Group(topology.LevelCore, c.Core).Intersection(able)
		}
		kept = kept.Union(core)
	}
	return kept
}

// systemUse is the CPUs that the host's own services were seen to use; 0 where
// that was not measured. Containers of a runtime or a pod are not among them,
// wherever their cgroups are.
func (f facts) systemUse() float64 {
	var sum float64
	for _, c := range f.Containers {
		used := f.Groups[c.Group.Path].UsedCPUs
		if used != nil && !isWorkload(c.Container) && f.inSystemSlice(c.Group.Path) && !f.placedOrLimited(c.Group.Path) {
			sum += *used
		}
	}
	return sum
}

// inSystemSlice tells of what lies in the host's own slices, or in those of what
// the scope holds.
func (f facts) inSystemSlice(path string) bool {
	return slices.ContainsFunc(systemSlices, func(name string) bool {
		return cgroup.Below(path, cgroup.Join("/", name)) || cgroup.Below(path, cgroup.Join(f.systemTop(), name))
	})
}

// placedOrLimited reports a service that is a workload rather than the
// host's own: it has a limit or CPUs by us.
func (f facts) placedOrLimited(path string) bool {
	if _, ours := f.placing(path); ours {
		return true
	}
	_, limited, _ := cgroup.Effective(f.levels(path))
	return limited
}
