package remedy

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// placed are the CPUs that a transaction in force chose for its target, its
// alone or not; false: it chose none.
func placed(h Held) (cpuset.CPUSet, bool) {
	if set, ok := pinnedCPUs(h); ok {
		return set, true
	}
	return floatingCPUs(h)
}

// Placed are the CPUs that a transaction in force chose for its target; empty:
// it chose none.
func (h Held) Placed() cpuset.CPUSet {
	set, _ := placed(h)
	return set
}

// MoveTo plans to give a container other CPUs than those it has by a pin or
// narrow of ours in force, as many or not: a plan that takes the transaction's
// place (Plan.Replaces). The cpusets that lost the old CPUs get them back,
// and lose the new ones. with are the transactions that change places with it
// in the same moment; their CPUs count as free.
func MoveTo(host hoststate.Facts, id string, to cpuset.CPUSet, with ...string) (Plan, error) {
	f, err := decode(host)
	if err != nil {
		return Plan{}, err
	}
	i := slices.IndexFunc(f.Held, func(h Held) bool { return h.ID == id })
	if i < 0 {
		return Plan{}, fmt.Errorf("transaction %q is no longer in force: plan again", id)
	}
	h := f.Held[i]
	from, ok := placed(h)
	if !ok {
		return Plan{}, fmt.Errorf("transaction %q (%s) gave no CPUs that could move", id, h.Remedy)
	}
	target, known := f.container(h.Target)
	if !known {
		target.Container = container.Container{Group: cgroup.Group{Path: h.Target, CPUSetPath: h.CPUSet}, Name: h.Name}
	}
	m := &mover{held: h, from: from, to: to, set: h.CPUSet, byKey: map[change.Key]int{}}
	_, m.exclusive = pinnedCPUs(h)
	m.pool = pool(h)
	m.gone, m.taken = from.Union(keptIdle(h)), to
	if h.Idle != nil {
		m.taken = to.Union(siblings(f.Machine, to))
	}
	m.planner = planner{f: f.gaveBack(h, m.gone), r: Request{Kind: Kind(h.Remedy)}, target: target.Container,
		plan: Plan{Target: target.Container, Remedy: Kind(h.Remedy), Parameters: maps.Clone(h.Parameters),
			Expected: h.Expected, Replaces: []string{id}}}
	if err := m.possible(with); err != nil {
		return Plan{}, err
	}
	m.plan.Parameters[paramCPUs] = to.String()
	if m.exclusive {
		m.plan.CPUs = to
	}
	if h.Idle != nil {
		m.plan.Parameters[paramIdle] = m.taken.Difference(to).String()
	}
	if !m.pool.IsEmpty() {
		m.plan.Parameters[paramPool] = m.sharedWith().String()
	}
	m.rewrite(h)
	for _, child := range f.Held {
		if child.For == id && child.Mems == nil {
			m.plan.Replaces = append(m.plan.Replaces, child.ID)
			m.rewrite(child)
		}
	}
	if err := m.others(with); err != nil {
		return Plan{}, err
	}
	if err := m.interruptsFollow(len(with) > 0); err != nil {
		return Plan{}, err
	}
	m.viaSystemd()
	return m.plan, nil
}

// gaveBack are the facts as if the CPUs of a pin were shared again.
func (f facts) gaveBack(h Held, from cpuset.CPUSet) facts {
	lost := map[string]bool{}
	for _, t := range f.Held {
		if t.ID != h.ID && t.For != h.ID {
			continue
		}
		for _, c := range t.Changes {
			if c.Op == change.OpRemoveCPUs && !f.lost(t.ID, c.Path) {
				lost[c.Path] = true
			}
		}
	}
	sets := make(map[string]hoststate.Set, len(f.Sets))
	for path, s := range f.Sets {
		back := lost[path] || f.CPUSetVersion == cgroup.V2 && under(lost, path)
		if back && !cgroup.Below(path, h.CPUSet) {
			gain := from
			if f.CPUSetVersion == cgroup.V2 && !lost[path] && !s.Configured.IsEmpty() {
				gain = from.Intersection(s.Configured)
			}
			s.Effective = s.Effective.Union(gain)
			if !s.Configured.IsEmpty() {
				s.Configured = s.Configured.Union(gain)
			}
		}
		sets[path] = s
	}
	f.Sets = sets
	return f
}

// mover is one move in the making.
type mover struct {
	planner
	held      Held
	from, to  cpuset.CPUSet
	set       string
	exclusive bool
	pool      cpuset.CPUSet // of a hybrid
	// CPUs that all others get back and lose: from and to, with the threads
	// that idle for it.
	gone, taken cpuset.CPUSet
	byKey       map[change.Key]int
}

// possible refuses CPUs that are not to be had.
func (m *mover) possible(with []string) error {
	switch _, exists := m.f.Sets[m.set]; {
	case !exists || m.f.lost(m.held.ID, m.set):
		return m.refuse("its cpuset "+text.Name(m.set)+" is gone", "")
	case m.to.IsEmpty():
		return m.refuse("no CPUs were given", "")
	}
	allowed := m.f.Machine.Online()
	if above, ok := m.f.Sets[parent(m.set)]; ok {
		allowed = allowed.Intersection(above.Effective)
	}
	if m.exclusive {
		allowed = allowed.Difference(m.reserve())
	}
	if bad := m.taken.Difference(allowed.Union(m.gone)); !bad.IsEmpty() {
		return m.refuse(fmt.Sprintf("CPUs %s are offline, the reserve, or not its parent's", bad), "plan again")
	}
	partners := m.f.cpusetsOf(with)
	for _, claim := range m.unavailable(targetCpuset{path: m.set}) {
		mayShare := claim.Shares && !m.exclusive
		if bad := claim.CPUs.Intersection(m.taken); !bad.IsEmpty() && !partners[claim.Pinned] && !mayShare {
			return m.refuse(fmt.Sprintf("CPUs %s are not free: %s has them", bad, claim.By), "plan again")
		}
	}
	return nil
}

// rewrite takes over what a transaction does with the old CPUs, with the new ones.
func (m *mover) rewrite(h Held) {
	property := map[string]bool{}
	for _, c := range h.Changes {
		if c.Kind == change.KindSystemd {
			property[c.Path] = true // apply writes the file behind it as well
		}
	}
	for _, c := range h.Changes {
		if c.Kind == change.KindFile && property[c.Path] {
			continue
		}
		if c.Kind != change.KindFile && c.Kind != change.KindSystemd || !isCPUs(c.File) || m.f.lost(h.ID, c.Path) {
			continue
		}
		list, err := topology.ParseList(c.To)
		to := m.to
		switch {
		case err != nil:
			continue
		case c.Op == change.OpSet && !m.pool.IsEmpty() && list.Equals(m.from.Union(m.pool)):
			to = to.Union(m.sharedWith())
		case c.Op == change.OpRemoveCPUs && list.Equals(m.gone):
			to = m.taken
		case !list.Equals(m.from):
			continue
		}
		if _, exists := m.f.Sets[c.Path]; !exists {
			continue
		}
		c.From, c.To = "", to.String()
		if at, twice := m.byKey[c.Key()]; twice {
			m.plan.Changes[at] = c
			continue
		}
		m.byKey[c.Key()] = len(m.plan.Changes)
		m.plan.Changes = append(m.plan.Changes, c)
	}
}

// sharedWith are the CPUs that a hybrid may use beside its new ones.
func (m *mover) sharedWith() cpuset.CPUSet {
	return m.pool.Union(m.gone).Difference(m.taken).Difference(m.othersPins())
}

// othersPins are the exclusive CPUs of others, with the threads that idle for them.
func (m *mover) othersPins() cpuset.CPUSet {
	cpuSet := cpuset.New()
	for set, alone := range m.f.withdrawn() {
		if set != m.set {
			cpuSet = cpuSet.Union(alone)
		}
	}
	return cpuSet
}

// others are moved off the new CPUs.
func (m *mover) others(with []string) error {
	if !m.exclusive {
		return nil
	}
	partner := m.f.cpusetsOf(with)
	inside, outside := m.movers(targetCpuset{path: m.set}, m.taken)
	inside = slices.DeleteFunc(inside, func(path string) bool { return partner[path] })
	for _, path := range inside {
		if at, none := m.leftWithout(path, m.taken, partner); none {
			return m.refuse(fmt.Sprintf("%s may use only %s and would be left without a CPU", text.Name(at),
				m.f.Sets[at].Effective), "plan again", at)
		}
		k := change.Change{Kind: change.KindFile, Controller: cgroup.CPUSet, Path: path, File: cgroup.FileCPUs}.Key()
		unit := change.Change{Kind: change.KindSystemd, Path: path, File: unitprop.AllowedCPUs, Unit: m.f.Groups[path].Unit}.Key()
		_, file := m.byKey[k]
		_, property := m.byKey[unit]
		if !file && !property {
			m.takeOut(path, m.taken, "off the CPUs of "+m.target.Name)
		}
	}
	if len(outside) > 0 {
		m.warn("%s: these cgroups are outside --scope and can still run there: %s", named(m.to), text.Names(outside))
	}
	return m.enoughLeft(inside, m.taken)
}

// cpusetsOf are the cpusets of transactions.
func (f facts) cpusetsOf(ids []string) map[string]bool {
	all := map[string]bool{}
	for _, h := range f.Held {
		if slices.Contains(ids, h.ID) {
			all[h.CPUSet] = true
		}
	}
	return all
}

// Part is how a plan goes to apply.Replace.
func (p Plan) Part() txn.Part {
	return txn.Part{Purpose: p.Purpose(), Changes: p.Changes, Replaces: p.Replaces}
}
