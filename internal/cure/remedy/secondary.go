package remedy

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/placement"
)

// Secondary runs on what the others leave idle, and gives way at once.
const Secondary Kind = "secondary"

// secondary is the row of Secondary.
var secondary = Remedy{
	Kind:       Secondary,
	Settings:   []Setting{{Flag: "strict"}},
	Classes:    []placement.Class{placement.Secondary},
	ForOthers:  true,
	here:       idleHere,
	plan:       (*planner).secondary,
	parameters: []string{paramSet, paramBorrowed},
}

// secondary plans the second of two tiers: a container that runs on what the
// others leave idle and gives way at once, at idle weight, or at the least
// weight where the kernel has no cpu.idle. Its quota goes, because it uses no CPU
// time that others want; strict keeps it. Beside the shared CPUs it gets those that
// pinned containers share.
func (p *planner) secondary() error {
	if p.f.Groups[p.target.Group.Path].Shares == 0 {
		return p.refuse("its weight cannot be read, so it cannot be made the least", "")
	}
	if _, ours := p.f.placing(p.target.Group.Path); ours {
		return p.refuse("it has CPUs by a remedy in force", "restore that first")
	}
	if outer := p.pinAround(); outer != "" {
		return p.refuse(fmt.Sprintf("it lies inside %s, which has exclusive CPUs: what it borrows would widen that pin", text.Name(outer)),
			"make the outer cgroup secondary, or restore its pin first", outer)
	}
	yielding := p.yielding()
	for _, path := range yielding {
		p.yield(path)
	}
	p.saysAgainstWhom(yielding[len(yielding)-1])
	if !p.f.HasIdle {
		p.warn("this kernel has no cpu.idle (5.15): it gets the least weight instead, and gives way only at the end of its turn, a few ms")
	}
	width := p.hostCPUs()
	if s, ok := p.f.Sets[p.target.Group.CPUSetPath]; ok && !s.Effective.IsEmpty() {
		width = float64(s.Effective.Size())
	}
	if !p.r.GrantLater {
		if err := p.borrow(&width); err != nil {
			return err
		}
	}
	if p.r.Strict {
		for _, level := range p.levels() {
			p.keepLimit(level.Path)
		}
		return nil
	}
	if p.f.Groups[p.target.Group.Path].Limit.Limited() {
		p.quotaOff(p.target.Group.Path, "quota off: it takes only what is left over")
	}
	p.liftWhereAllowed(width)
	p.innerQuotas()
	return nil
}

// pinAround is the cpuset of a pin that holds the target and more, "" where there is none.
func (p *planner) pinAround() string {
	for _, set := range slices.Sorted(maps.Keys(p.f.withdrawn())) {
		if set != p.target.Group.CPUSetPath && cgroup.Below(p.target.Group.CPUSetPath, set) {
			return set
		}
	}
	return ""
}

// yielding are the cgroups that are to be idle: weights compare siblings only,
// so that of a pod with nothing else at work in it the pod is one too, where it
// is ours to change.
func (p *planner) yielding() []string {
	at := p.target.Group.Path
	all := []string{at}
	for {
		up := parent(at)
		if up == "" || up == "/" || !p.f.inScope(up) || !p.mayLift(up) || p.f.Groups[up].Procs > 0 || p.f.Groups[up].Shares == 0 ||
			p.f.HiddenProcesses || len(p.atWork(up, at)) > 0 {
			return all
		}
		all, at = append(all, up), up
	}
}

// atWork are the children of a level beside the one on the target's path that
// have processes, a pod's pause process aside.
func (p *planner) atWork(level, onPath string) []string {
	var all []string
	for _, child := range children(p.f.Groups, level) {
		if child == onPath {
			continue
		}
		for path, g := range p.f.Groups {
			if cgroup.Below(path, child) && g.Procs > 0 && !g.Sandbox {
				all = append(all, child)
				break
			}
		}
	}
	return all
}

// yield makes a cgroup idle.
func (p *planner) yield(path string) {
	g := p.f.Groups[path]
	to := cgroup.SharesWrite(p.f.CPUVersion, cgroup.MinShares).Value
	if p.f.HasIdle {
		to = cgroup.WeightIdle
	}
	p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpSet, Controller: cgroup.CPU, Path: path,
		File: cgroup.WeightFile(p.f.CPUVersion), From: p.weightText(g), To: to, Why: "gives way to all other work on its CPUs"})
}

// weightText is a weight as package apply reads it.
func (p *planner) weightText(g hoststate.Group) string {
	if g.Idle {
		return cgroup.WeightIdle
	}
	return cgroup.SharesWrite(p.f.CPUVersion, g.Shares).Value
}

// saysAgainstWhom warns where others are on a level above the topmost idle
// cgroup: against those its ancestor's weight counts.
func (p *planner) saysAgainstWhom(top string) {
	for level := parent(top); level != "" && level != "/"; level = parent(level) {
		if rivals := p.atWork(parent(level), level); len(rivals) > 0 {
			p.warn("it gives way to what is in %s; against the others it counts with the weight of that, which is not ours to change "+
				"or holds others too: %s", text.Name(level), text.Names(rivals))
			return
		}
	}
}

// liftWhereAllowed lifts the ancestors' quotas that would bind, as far as they
// are ours to lift; the others stay, and are named: what bounds a secondary
// harms no other container.
func (p *planner) liftWhereAllowed(demand float64) {
	onPath := p.target.Group.Path
	for _, level := range p.levels()[1:] {
		width, unbounded := p.others(level.Path, onPath)
		onPath = level.Path
		demand = min(demand+width, p.hostCPUs())
		quota, limited := level.Limit.Bound()
		switch {
		case !limited || demand < quota-epsilon:
			p.keepLimit(level.Path)
		case p.mayLift(level.Path) && p.f.inScope(level.Path) && len(unbounded) == 0 && !math.IsInf(width, 1):
			p.quotaOff(level.Path, "quota off: it would still stop "+p.target.Name)
		default:
			p.keepLimit(level.Path)
			p.skip(level.Path, fmt.Sprintf("its quota of %s stays, and bounds it", text.CPUs(quota)))
			demand = quota
		}
	}
}
