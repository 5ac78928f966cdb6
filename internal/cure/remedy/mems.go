package remedy

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/placement"
)

// MemsPlan sets the memory nodes of a container that we placed.
type MemsPlan struct {
	Plan
	// Mems are the nodes that its CPUs want, Set the path of its cpuset.
	Mems cpuset.CPUSet
	Set  string
}

// WidenMems plans to let a container use the memory of the nodes of CPUs, its own
// or those that it is to get, beside the nodes that it uses now: before its pages
// are moved.
func WidenMems(host hoststate.Facts, target string, at cpuset.CPUSet) (MemsPlan, error) {
	f, err := decode(host)
	if err != nil {
		return MemsPlan{}, err
	}
	return mems(f, target, at, true)
}

// NarrowMems plans to let it use the nodes of its CPUs only, after its pages were
// moved.
func NarrowMems(host hoststate.Facts, target string) (MemsPlan, error) {
	f, err := decode(host)
	if err != nil {
		return MemsPlan{}, err
	}
	h, _ := f.placing(target)
	return mems(f, target, h.Placed(), false)
}

func mems(f facts, target string, at cpuset.CPUSet, widen bool) (MemsPlan, error) {
	h, ok := f.placing(target)
	p := &planner{f: f, r: Request{Kind: Kind(h.Remedy)}, target: container.Container{Group: cgroup.Group{Path: target}, Name: h.Name}}
	if !ok {
		return MemsPlan{}, p.refuse("it has no CPUs by us that its memory could follow", "pin it first")
	}
	set := h.CPUSet
	p.target.Group.CPUSetPath = set
	s, exists := f.Sets[set]
	if !exists || f.lost(h.ID, set) {
		return MemsPlan{}, p.refuse("its cpuset "+text.Name(set)+" is gone", "")
	}
	want := placement.Mems(f.Machine, at)
	if above, ok := f.Sets[parent(set)]; ok && !above.EffectiveMems.IsEmpty() {
		want = want.Intersection(above.EffectiveMems)
	}
	if want.IsEmpty() {
		return MemsPlan{}, p.refuse("the memory nodes of its CPUs are not known, or not its parent's", "leave its memory where it is")
	}
	p.plan = Plan{Target: p.target, Remedy: Kind(h.Remedy), Parameters: map[string]string{ParamUpkeep: h.ID, paramMems: want.String()}}
	p.plan.Replaces = f.memsOf(target)
	to, why := want, "memory nodes of its CPUs"
	if widen {
		to, why = want.Union(s.EffectiveMems), "old and new memory nodes while pages move"
	}
	if !to.Equals(s.EffectiveMems) || len(p.plan.Replaces) == 0 {
		p.setList(set, cgroup.FileMems, "", to.String(), why)
	}
	p.viaSystemd()
	return MemsPlan{Plan: p.plan, Mems: want, Set: set}, nil
}

// FollowsMemory tells whether the memory of a container was to follow its CPUs.
// The error is an *Unreadable.
func FollowsMemory(host hoststate.Facts, target string) (bool, error) {
	f, err := decode(host)
	return err == nil && len(f.memsOf(target)) > 0, err
}

// memsOf are the transactions that set the memory nodes of a container.
func (f facts) memsOf(target string) (ids []string) {
	for _, held := range f.Held {
		if held.Target == target && held.For != "" && held.Mems != nil {
			ids = append(ids, held.ID)
		}
	}
	return ids
}
