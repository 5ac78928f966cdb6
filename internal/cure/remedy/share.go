package remedy

import (
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// sharedCPUs are the CPUs that a pin in force lends to secondary containers; empty:
// none.
func sharedCPUs(h Held) cpuset.CPUSet {
	alone, ok := pinnedCPUs(h)
	if !ok || !h.Shares {
		return cpuset.New()
	}
	return alone
}

// borrowedCPUs are the CPUs that a secondary in force, or what keeps it so, was lent.
func borrowedCPUs(h Held) cpuset.CPUSet {
	if h.Remedy != string(Secondary) {
		return cpuset.New()
	}
	return h.Borrowed
}

// borrow puts the CPUs that pinned containers lend into the target's cpuset.
func (p *planner) borrow(width *float64) error {
	lent, lenders := p.lent()
	if lent.IsEmpty() {
		return nil
	}
	targetCpuset, err := p.targetCpuset()
	if err != nil {
		p.warn("CPUs %s are lent, but it cannot have them: %s", lent, err)
		return nil
	}
	if len(targetCpuset.create) > 0 && targetCpuset.from != p.top() {
		p.warn("CPUs %s are lent, but it cannot have them: it has no cpuset of its own below the root", lent)
		return nil
	}
	possible := p.grantable(targetCpuset, lent)
	if possible.IsEmpty() {
		p.warn("CPUs %s are lent, but it cannot have them: they are outside of what it may use, or a cgroup above it "+
			"lies outside the scope or holds processes itself", lent)
		return nil
	}
	if err := p.enable(targetCpuset); err != nil {
		return err
	}
	usable := targetCpuset.allowed.Union(possible)
	if len(targetCpuset.create) > 0 {
		// No pin took its CPUs out of a cpuset that did not exist.
		usable = p.unclaimed(targetCpuset).Union(possible)
		p.settle(targetCpuset, usable, "the shared CPUs, and what others lend")
	}
	p.putIn(targetCpuset.path, possible)
	p.plan.Parameters[paramSet], p.plan.Parameters[paramBorrowed] = targetCpuset.path, possible.String()
	p.plan.Lenders = lenders
	*width = float64(usable.Size())
	p.warn("it also runs on CPUs %s, lent by %s, while they idle", possible, text.Names(lenders))
	return nil
}

// unclaimed are the CPUs that the target may use and that nothing else has alone.
func (p *planner) unclaimed(targetCpuset targetCpuset) cpuset.CPUSet {
	left := targetCpuset.allowed
	for _, claim := range p.unavailable(targetCpuset) {
		if !claim.Shares {
			left = left.Difference(claim.CPUs)
		}
	}
	return left
}

// lent are the CPUs that others lend, and who. Of a pin inside another, the outer one must lend too: both have the CPUs
// alone.
func (p *planner) lent() (cpuset.CPUSet, []string) {
	var lenders []Held
	kept := cpuset.New()
	for _, h := range p.f.Held {
		alone, ok := pinnedCPUs(h)
		inside := cgroup.Below(h.Target, p.target.Group.Path) || cgroup.Below(p.target.Group.Path, h.Target)
		switch {
		case !ok || p.f.over(h) || inside:
		case h.Shares && !p.f.revoked(h):
			lenders = append(lenders, h)
		default:
			kept = kept.Union(alone)
		}
	}
	cpuSet, who := cpuset.New(), []string(nil)
	for _, h := range lenders {
		if set := sharedCPUs(h).Difference(kept); !set.IsEmpty() {
			cpuSet, who = cpuSet.Union(set), append(who, h.Target)
		}
	}
	return cpuSet, who
}

// grantable are those of the lent CPUs that every cpuset on the way down to the
// target had before ours were taken out of it.
func (p *planner) grantable(targetCpuset targetCpuset, lent cpuset.CPUSet) cpuset.CPUSet {
	if len(targetCpuset.create) > 0 {
		// The rollback narrows the cpusets above before it removes a created one, which the kernel refuses:
		// those above must have the CPUs already.
		lent = lent.Intersection(targetCpuset.allowed)
	}
	taken := p.f.taken()
	for _, path := range p.chain(targetCpuset.path) {
		s := p.f.Sets[path]
		if s.InPartition() {
			return cpuset.New()
		}
		if !s.Configured.IsEmpty() {
			lent = lent.Intersection(s.Configured.Union(taken[path]))
		}
		// On v1 processes may live above it, and would get the CPUs too.
		above := path != targetCpuset.path && (s.Procs > 0 || p.f.HiddenProcesses && p.f.CPUSetVersion == cgroup.V1)
		if above || !p.f.inScope(path) {
			lent = lent.Difference(taken[path])
		}
	}
	return lent.Intersection(p.f.Machine.Online())
}

// chain are the cpusets from below the top down to path that exist.
func (p *planner) chain(path string) []string {
	var all []string
	for _, at := range append([]string{path}, ancestors(path)...) {
		if _, ok := p.f.Sets[at]; ok && at != p.top() && below(at, p.top()) {
			all = append(all, at)
		}
	}
	slices.Reverse(all)
	return all
}

// putIn gives lent CPUs back to the cpusets of the target and above, and on v2
// takes them from those that would inherit them: at each level that has them now,
// also one whose list is empty.
func (p *planner) putIn(set string, lent cpuset.CPUSet) {
	way, taken := p.chain(set), p.f.taken()
	gained := cpuset.New() // at this level
	for _, path := range way {
		s := p.f.Sets[path]
		if back := p.grantBack(path, lent.Intersection(taken[path])); !back.IsEmpty() {
			gained = gained.Union(back)
		} else if !s.Configured.IsEmpty() {
			gained = gained.Intersection(s.Configured)
		}
		if path == set || gained.IsEmpty() || p.f.CPUSetVersion != cgroup.V2 {
			continue
		}
		for _, child := range children(p.f.Sets, path) {
			if c := p.f.Sets[child].Configured; !slices.Contains(way, child) && (c.IsEmpty() || !c.Intersection(gained).IsEmpty()) {
				p.takeOut(child, gained, "not lent to it")
			}
		}
	}
	for _, path := range p.sets() {
		if below(path, set) {
			p.grantBack(path, lent.Intersection(taken[path]))
		}
	}
}

// grantBack gives a cpuset lent CPUs that were taken out of it, and says which: none
// outside of the scope.
func (p *planner) grantBack(path string, back cpuset.CPUSet) cpuset.CPUSet {
	if !p.f.inScope(path) || back.IsEmpty() {
		return cpuset.New()
	}
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpAddCPUs, Controller: cgroup.CPUSet,
		Path: path, File: cgroup.FileCPUs, From: p.f.Sets[path].Cpus, To: back.String(), Why: "lent to " + p.target.Name})
	return back
}

// taken are the CPUs that our transactions in force took out of each set and did
// not give back by lending: who came last decides.
func (f facts) taken() map[string]cpuset.CPUSet { return f.lastly(change.OpRemoveCPUs) }

// lastly are the CPUs of each set with which one of the two operations on lists
// was the last to do something.
func (f facts) lastly(op change.Op) map[string]cpuset.CPUSet {
	all := map[string]cpuset.CPUSet{}
	for _, h := range f.Held {
		for _, c := range h.Changes {
			does, list := c.Op, c.To
			if does == change.OpSet && isCPUs(c.File) && c.Path == h.CPUSet && h.Remedy == string(Secondary) {
				does, list = change.OpAddCPUs, h.Borrowed.String() // a cpuset that borrow created
			}
			if does != change.OpRemoveCPUs && does != change.OpAddCPUs || f.lost(h.ID, c.Path) {
				continue
			}
			set, err := topology.ParseList(list)
			switch {
			case err != nil:
			case does == op:
				all[c.Path] = all[c.Path].Union(set)
			default:
				all[c.Path] = all[c.Path].Difference(set)
			}
		}
	}
	return all
}

// lentSets are the lent CPUs of each cpuset: those put into it, and at and below the cpuset of a secondary, which
// may inherit them (v2), all that it borrows. While the CPUs of the lender are revoked, nothing is inherited.
func (f facts) lentSets(lender Held) map[string]cpuset.CPUSet {
	all := f.lastly(change.OpAddCPUs)
	if f.revoked(lender) {
		return all
	}
	for set, borrowed := range f.bySet(borrowedCPUs) {
		for path := range f.Sets {
			if cgroup.Below(path, set) {
				all[path] = all[path].Union(borrowed)
			}
		}
	}
	return all
}

// grantSecondary plans to give a secondary in force the CPUs that are lent by now and
// that it lacks: a pin that lends came later, or moved.
func (p *planner) grantSecondary(h Held, target hoststate.Container) {
	p.moveRestartedProcesses(h, target, h.CPUSet)
	lent, _ := p.lent()
	if lent.IsEmpty() {
		return
	}
	targetCpuset, err := p.targetCpuset()
	if err != nil || len(targetCpuset.create) > 0 {
		return
	}
	possible, before := p.grantable(targetCpuset, lent), len(p.plan.Changes)
	p.putIn(targetCpuset.path, possible)
	if len(p.plan.Changes) > before && p.enable(targetCpuset) != nil {
		p.plan.Changes = p.plan.Changes[:before] // those beside it would inherit the CPUs
		return
	}
	p.plan.Parameters[paramSet], p.plan.Parameters[paramBorrowed] = targetCpuset.path, possible.String()
}
