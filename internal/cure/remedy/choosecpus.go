package remedy

import (
	"errors"
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// chosen is where a target goes: the CPUs that it gets, the threads beside them
// that idle for it, how many of its cores others can use too, and why there.
type chosen struct {
	own, idle cpuset.CPUSet
	shared    int
	why       string
}

// withdrawn are the CPUs that all others lose.
func (c chosen) withdrawn() cpuset.CPUSet { return c.own.Union(c.idle) }

// choose picks n exclusive CPUs for the target, among those that it may use and that
// no other claims.
func (p *planner) choose(targetCpuset targetCpuset, n int) (chosen, error) {
	state, taken := p.around(targetCpuset)
	placed, err := placement.PlaceBeside(state, p.spare(state, taken), placement.Container{Name: p.target.Group.Path, CPUs: float64(n),
		FullCores: p.r.FullCores, IdleSiblings: p.r.IdleSiblings})
	if few := new(placement.TooFewError); errors.As(err, &few) {
		return chosen{}, p.tooFew(targetCpuset, n, few, taken)
	}
	if err != nil {
		return chosen{}, p.refuse(err.Error(), "")
	}
	return chosen{own: placed.Own, idle: placed.Idle, why: placed.Why,
		shared: sharedCores(p.f.Machine, placed.Own, placed.Own.Union(placed.Idle))}, nil
}

// around is the node as the target finds it: what it cannot have is unavailable,
// and who claims that.
func (p *planner) around(targetCpuset targetCpuset) (placement.State, []hoststate.Claim) {
	s := p.f.state(p.r.Reserve, nil)
	taken := p.unavailable(targetCpuset)
	s.Reserved = p.reserve() // a full node's is not all of it
	s.Unavailable = p.f.Machine.Online().Difference(targetCpuset.allowed)
	for _, claim := range taken {
		if claim.Pinned == "" {
			s.Unavailable = s.Unavailable.Union(claim.CPUs)
		}
	}
	others := s.Containers[:0]
	for _, c := range s.Containers {
		h, _ := p.f.placing(c.Name)
		if set := h.CPUSet; c.Name != p.target.Group.Path &&
			!(cgroup.Below(set, targetCpuset.path) || cgroup.Below(targetCpuset.path, set)) {
			if c.Class == placement.Floating {
				// Others may use its CPUs too, but the target no more than it may anyway.
				if c.Current = c.Current.Intersection(targetCpuset.allowed); c.Current.IsEmpty() {
					continue
				}
				c.CPUs = float64(c.Current.Size())
			}
			others = append(others, c)
			s.Unavailable = s.Unavailable.Difference(c.Current).Difference(c.Idle)
			s.Reserved = s.Reserved.Difference(c.Current).Difference(c.Idle)
		}
	}
	s.Containers = others
	return s, taken
}

// spare counts the CPUs that others share and the target cannot have: the reserve,
// and what lies outside of what it may use.
func (p *planner) spare(s placement.State, taken []hoststate.Claim) int {
	shared := p.f.Machine.Online().Difference(p.f.Machine.Isolated()).Intersection(s.Reserved.Union(s.Unavailable))
	for _, claim := range taken {
		if !claim.Shares {
			shared = shared.Difference(claim.CPUs)
		}
	}
	return shared.Size()
}

// maxClaims bounds how many holders of CPUs a message names.
const maxClaims = 8

// tooFew says who has the CPUs.
func (p *planner) tooFew(targetCpuset targetCpuset, n int, few *placement.TooFewError, taken []hoststate.Claim) error {
	allowed, reserve := targetCpuset.allowed.Intersection(p.f.Machine.Online()), p.reserve()
	what := text.CPUs(float64(n)) + " wanted"
	switch {
	case few.WholeCores:
		what += " as whole cores"
	case few.Idle:
		what += " on cores of their own"
	}
	why := fmt.Sprintf("%s, %d free: it may use %s, the reserve is %s", what, few.Free, list(allowed), list(reserve))
	for i, claim := range taken {
		lost := claim.CPUs.Intersection(allowed).Difference(reserve)
		if lost.IsEmpty() || i >= maxClaims {
			continue
		}
		why += fmt.Sprintf(", %s has %s", claim.By, lost)
	}
	hint := "give exclusive CPUs back, or try --remedy burst"
	switch {
	case few.WholeCores:
		hint = "ask for another number with --cpus, or leave --full-cores out"
	case few.Idle:
		hint = "ask for fewer with --cpus, or leave --idle-siblings out"
	case n > 1:
		hint = "ask for fewer with --cpus, " + hint
	}
	return p.refuse(why, hint)
}

// sharedCores counts the cores of which a set has a part and others can use what
// is not withdrawn from them.
func sharedCores(m topology.Machine, own, withdrawn cpuset.CPUSet) int {
	shared := map[topology.ID]bool{}
	for _, id := range own.List() {
		c, ok := m.CPU(id)
		if ok && c.Core != topology.Unknown && !m.Group(topology.LevelCore, c.Core).Intersection(m.Online()).IsSubsetOf(withdrawn) {
			shared[c.Core] = true
		}
	}
	return len(shared)
}

// siblings are the other threads, online, of the cores that a set has a part of.
func siblings(m topology.Machine, own cpuset.CPUSet) cpuset.CPUSet {
	set := cpuset.New()
	for _, id := range own.List() {
		if c, ok := m.CPU(id); ok && c.Core != topology.Unknown {
			set = set.Union(m.Group(topology.LevelCore, c.Core))
		}
	}
	return set.Intersection(m.Online()).Difference(own)
}

// float chooses CPUs for one that shares them: the least loaded ones of one NUMA
// node if one has as many. The reserve is left out as long as there are enough
// without it, and so are CPUs that others are confined to: the target may run on
// those too, as all pods do that a kubelet with the static policy gave no CPUs.
func (p *planner) float(targetCpuset targetCpuset, n int) (chosen, error) {
	state, taken := p.around(targetCpuset)
	c := placement.Container{Name: p.target.Group.Path, CPUs: float64(n), Class: placement.Floating}
	placed, err := placement.PlaceBeside(state, p.spare(state, taken), c)
	few := new(placement.TooFewError)
	if errors.As(err, &few) {
		state.Reserved = cpuset.New()
		placed, err = placement.PlaceBeside(state, p.spare(state, taken), c)
	}
	if errors.As(err, &few) {
		state.Unavailable = state.Unavailable.Difference(p.unclaimed(targetCpuset))
		placed, err = placement.PlaceBeside(state, p.spare(state, taken), c)
	}
	if errors.As(err, &few) {
		return chosen{}, p.refuse(fmt.Sprintf("%s wanted, %d available: it may use %s", text.CPUs(float64(n)), few.Free,
			list(targetCpuset.allowed)),
			"give exclusive CPUs back, or try --remedy burst")
	}
	if err != nil {
		return chosen{}, p.refuse(err.Error(), "")
	}
	return chosen{own: placed.CPUs, why: placed.Why}, nil
}
