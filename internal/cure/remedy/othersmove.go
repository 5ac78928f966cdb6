package remedy

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// moveOthers takes the target's CPUs out of every other cpuset that has them,
// and refuses where those would be left with fewer CPUs than they need.
func (p *planner) moveOthers(h targetCpuset, pinned cpuset.CPUSet) error {
	movers, outside := p.movers(h, pinned)
	for _, path := range movers {
		s := p.f.Sets[path]
		if at, none := p.leftWithout(path, pinned, nil); none {
			return p.refuse(fmt.Sprintf("%s may use only %s and would be left without a CPU", text.Name(at), p.f.Sets[at].Effective),
				fewer(pinned, "restore other pins, or try --remedy burst"), at)
		}
		if !s.Configured.IsEmpty() && s.Configured.Intersection(s.Effective).IsEmpty() {
			return p.refuse(fmt.Sprintf("%s was given %s, none of which its parent has, so it runs on %s instead: it cannot be moved off",
				text.Name(path), s.Configured, s.Effective), "set its cpuset.cpus to CPUs that its parent has", path)
		}
		p.takeOut(path, pinned, "off the CPUs of "+p.target.Name)
	}
	if len(outside) > 0 {
		p.warn("%s: these cgroups are outside --scope and can still run there: %s", named(pinned), text.Names(outside))
	}
	return p.enoughLeft(movers, pinned)
}

// leftWithout finds the cpuset that would keep no CPU, which is path or, on v2, one
// below it that names CPUs of its own. The kernel lets the latter run on all CPUs of
// its parent instead (update_cpumasks_hier, kernel/cgroup/cpuset.c), which may be
// those of another pin. Sets in apart are planned elsewhere.
func (p *planner) leftWithout(path string, pinned cpuset.CPUSet, apart map[string]bool) (at string, none bool) {
	if p.f.Sets[path].Effective.IsSubsetOf(pinned) {
		return path, true
	}
	if p.f.CPUSetVersion != cgroup.V2 {
		return "", false // each set of v1 is looked at by itself
	}
	for _, inner := range p.sets() {
		s := p.f.Sets[inner]
		if cgroup.Below(inner, path) && !apart[inner] && !s.Configured.IsEmpty() && s.Effective.IsSubsetOf(pinned) {
			return inner, true
		}
	}
	return "", false
}

// takeOut adds the change that moves a cpuset off the target's CPUs.
func (p *planner) takeOut(path string, pinned cpuset.CPUSet, why string) {
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpRemoveCPUs,
		Controller: cgroup.CPUSet, Path: path, File: cgroup.FileCPUs, From: p.f.Sets[path].Cpus, To: pinned.String(), Why: why})
}

// movers are the cpusets to be shrunk; of those outside the scope the topmost. On v1
// every set names its CPUs, so each is written. On v2 a set has no more than
// its parent, so that the topmost ones are enough. Sets that another pin of ours
// confines, or took these CPUs out of, are among them: after its rollback,
// they must not spread over the CPUs of this one.
func (p *planner) movers(h targetCpuset, pinned cpuset.CPUSet) (inside, outside []string) {
	done := map[string]bool{}
	confined, removed := p.f.confined(), p.f.removed()
	for _, path := range p.sets() {
		if path == p.top() || cgroup.Below(path, h.path) || cgroup.Below(h.path, path) {
			continue
		}
		if p.f.uses(path).Union(removed[path]).Intersection(pinned).IsEmpty() && !confined[path] {
			continue
		}
		if lent := p.sharedWithSets[path]; !lent.IsEmpty() && pinned.IsSubsetOf(lent) {
			continue
		}
		if p.f.CPUSetVersion == cgroup.V2 && under(done, path) {
			continue
		}
		done[path] = true
		if p.f.inScope(path) {
			inside = append(inside, path)
		} else if !slices.ContainsFunc(outside, func(top string) bool { return below(path, top) }) {
			outside = append(outside, path)
		}
	}
	return inside, outside
}

// uses are the CPUs of a cpuset; on v1 also those that it would have, were they
// online.
func (f facts) uses(path string) cpuset.CPUSet {
	s := f.Sets[path]
	if f.CPUSetVersion == cgroup.V1 {
		return s.Configured.Union(s.Effective)
	}
	return s.Effective
}

// enoughLeft compares what the containers that move need with the CPUs they
// keep, for all who keep the same CPUs, with those who keep a part of these.
func (p *planner) enoughLeft(movers []string, pinned cpuset.CPUSet) error {
	type pool struct {
		left cpuset.CPUSet
		need requirements
		who  []string
	}
	moved := map[string]bool{}
	for _, path := range movers {
		moved[path] = true
	}
	pools, byLeft, unmeasured := []*pool{}, map[string]*pool{}, 0
	for _, c := range p.f.Containers {
		if cgroup.Below(c.Group.Path, p.target.Group.Path) || !under(moved, c.Group.CPUSetPath) {
			continue
		}
		left := p.f.Sets[c.Group.CPUSetPath].Effective.Difference(pinned)
		at := byLeft[left.String()]
		if at == nil {
			at = &pool{left: left}
			pools, byLeft[left.String()] = append(pools, at), at
		}
		need := p.f.need(c)
		if !need.Measured {
			unmeasured++
		}
		at.need, at.who = at.need.plus(need), append(at.who, c.Group.Path)
		p.plan.Moved = append(p.plan.Moved, c.Group.Path)
	}
	for _, at := range pools {
		var sum requirements
		var who []string
		for _, part := range pools {
			if part.left.IsSubsetOf(at.left) {
				sum = sum.plus(part.need)
				who = append(who, part.who...)
			}
		}
		if need := sum.CPUs(); need > float64(at.left.Size())+epsilon {
			return p.refuse(fmt.Sprintf("%s would be left (%s) for %s that need %s (requests %.4g, in use %s)",
				text.CPUs(float64(at.left.Size())), at.left, text.CountOf(len(who), "other container", "other containers"),
				text.CPUs(need), sum.Requested, sum.used()), fewer(pinned, "try --remedy burst"), who...)
		}
	}
	if unmeasured > 0 {
		p.warn("the CPU use of %s that move was not measured: only their requests were counted",
			text.CountOf(unmeasured, "container", "containers"))
	}
	return nil
}

// under tells whether a path is one of those or below one.
func under(in map[string]bool, path string) bool {
	return in[path] || slices.ContainsFunc(ancestors(path), func(a string) bool { return in[a] })
}

// fewer advises to ask for fewer CPUs where there are fewer, or else.
func fewer(pinned cpuset.CPUSet, other string) string {
	if pinned.Size() <= 1 {
		return other // one is the least
	}
	return "ask for fewer CPUs with --cpus, or " + other
}

// named is a set of CPUs in a sentence: "CPU 1", "CPUs 0-3".
func named(cpus cpuset.CPUSet) string {
	return text.Either(cpus.Size() == 1, "CPU ", "CPUs ") + cpus.String()
}
