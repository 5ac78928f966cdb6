package remedy

import (
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/placement"
)

// State is the node as package placement sees it: the containers that have CPUs
// by a pin or narrow of ours in force, and the secondaries, oldest first, by the
// path of their cgroup. CPUs that other programs gave out or confined cgroups to are unavailable.
// stays names the containers, by path, that must not be moved, and why.
func State(host hoststate.Facts, reserve *cpuset.CPUSet, stays map[string]string) (placement.State, error) {
	f, err := decode(host)
	if err != nil {
		return placement.State{}, err
	}
	if reserve != nil {
		if err := CheckReserve(f.Machine, *reserve); err != nil {
			return placement.State{}, err
		}
	}
	return f.state(reserve, stays), nil
}

func (f facts) state(reserve *cpuset.CPUSet, stays map[string]string) placement.State {
	p := &planner{f: f, r: Request{Reserve: reserve}}
	s := placement.State{Machine: f.Machine, Reserved: p.reserve(), Load: f.Load}
	if top, ok := f.Sets[p.top()]; ok {
		s.Unavailable = f.Machine.Online().Difference(top.Effective)
	}
	cpusetsOf := map[string]bool{}
	for _, h := range f.Held {
		if _, ok := placed(h); ok {
			cpusetsOf[h.CPUSet] = true
		}
	}
	confined := map[string]string{}
	for _, claim := range p.unavailable(targetCpuset{}) {
		if claim.Pinned != "" {
			continue
		}
		s.Unavailable = s.Unavailable.Union(claim.CPUs)
		for targetCpuset := range cpusetsOf {
			if claim.Set != "" && cgroup.Below(targetCpuset, claim.Set) {
				confined[targetCpuset] = "it is in " + claim.By + ", which another program confined"
			}
		}
	}
	for _, h := range f.Held {
		current, ok := placed(h)
		if !ok {
			if h.Remedy == string(Secondary) && h.For == "" && !f.over(h) {
				s.Containers = append(s.Containers, placement.Container{Name: h.Target, CPUs: f.mayUse(h.Target),
					Class: placement.Secondary})
			}
			continue
		}
		c := placement.Container{Name: h.Target, CPUs: float64(current.Size()), Class: placement.Exclusive,
			Current: current, Immovable: stays[h.Target],
			SharesIdle: !sharedCPUs(h).IsEmpty() && !f.revoked(h)}
		if _, floats := floatingCPUs(h); floats {
			c.Class = placement.Floating
		}
		c.FullCores, c.IdleSiblings, c.Idle = h.FullCores, h.Idle != nil, keptIdle(h)
		if h.Limit > 0 && !pool(h).IsEmpty() {
			c.Class, c.CPUs = placement.Hybrid, h.Limit
		}
		set := h.CPUSet
		switch {
		case c.Immovable != "":
		case h.Immovable:
			c.Immovable = "it asked not to be moved"
		case h.Interrupts && f.whyInterruptsStay() != "":
			c.Immovable = f.whyInterruptsStay()
		case confined[set] != "":
			c.Immovable = confined[set]
		case !f.inScope(set) || !f.inScope(h.Target):
			c.Immovable = "it lies outside the scope"
		case f.over(h):
			c.Immovable = "it is gone"
		}
		// A container keeps its CPUs although other programs confined cgroups to them since.
		s.Unavailable = s.Unavailable.Difference(current).Difference(c.Idle)
		s.Reserved = s.Reserved.Difference(current).Difference(c.Idle)
		s.Containers = append(s.Containers, c)
	}
	f.fullNode(&s)
	return s
}

// fullNode handles a host on which every CPU outside the reserve is exclusive, so that
// the others run on the reserve only. One CPU of the reserve stands for the shared pool,
// which a placement must have. No container moves, because there is no room.
func (f facts) fullNode(s *placement.State) {
	pool := f.Machine.Online().Difference(f.Machine.Isolated()).Difference(s.Reserved).Difference(s.Unavailable)
	for _, c := range s.Containers {
		if c.Class == placement.Exclusive || c.Class == placement.Hybrid {
			pool = pool.Difference(c.Current).Difference(c.Idle)
		}
	}
	if spare := s.Reserved.Intersection(f.Machine.Online()).Difference(s.Unavailable); pool.IsEmpty() && !spare.IsEmpty() {
		s.Reserved = s.Reserved.Difference(cpuset.New(spare.List()[0]))
		for i, c := range s.Containers {
			if c.Immovable == "" && c.Class != placement.Secondary {
				s.Containers[i].Immovable = "every CPU outside the reserve is exclusive: there is no room to move"
			}
		}
	}
}

// mayUse is how many CPUs a container may use at once: its own quota's, or those
// of its cpuset; 1 where neither is known.
func (f facts) mayUse(path string) float64 {
	if quota, limited := f.Groups[path].Limit.Bound(); limited {
		return quota
	}
	if c, ok := f.container(path); ok {
		return float64(max(1, f.Sets[c.Group.CPUSetPath].Effective.Size()))
	}
	return 1
}

// Placing finds the transaction that gave a container its CPUs. The error is an *Unreadable.
func Placing(host hoststate.Facts, target string) (Held, bool, error) {
	f, err := decode(host)
	if err != nil {
		return Held{}, false, err
	}
	h, ok := f.placing(target)
	return h, ok, nil
}

func (f facts) placing(target string) (Held, bool) {
	i := slices.IndexFunc(f.Held, func(h Held) bool {
		_, ok := placed(h)
		return ok && h.Target == target
	})
	if i < 0 {
		return Held{}, false
	}
	return f.Held[i], true
}
