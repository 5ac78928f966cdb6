package remedy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// targetCpuset is the cpuset that the target gets.
type targetCpuset struct {
	path string
	// create are the cgroups to be made for it, from the top down, path the
	// last; nil: it exists. from is then where the target's tasks are.
	create []string
	from   string
	// allowed are the CPUs, mems the memory nodes that it may use today.
	allowed, mems cpuset.CPUSet
}

// targetCpuset finds the target's cpuset, or where to make one (v1: a systemd unit has
// none of its own, and containers of one pod may share theirs).
func (p *planner) targetCpuset() (targetCpuset, error) {
	at := p.target.Group.CPUSetPath
	s, ok := p.f.Sets[at]
	if !ok {
		return targetCpuset{}, p.refuse("its cpuset cgroup "+text.Name(at)+" is gone or cannot be seen", "")
	}
	h := targetCpuset{path: at, from: at, allowed: s.Effective, mems: s.EffectiveMems}
	switch {
	case p.ownSet():
		if s.InPartition() || p.f.CPUSetVersion == cgroup.V1 && s.Exclusive {
			return h, p.refuse(fmt.Sprintf("it has exclusive CPUs %s already", s.Effective),
				"take only its quota off: --remedy weight")
		}
		if elsewhere := s.Configured; !elsewhere.IsEmpty() && elsewhere.Intersection(s.Effective).IsEmpty() {
			// Restored to these, it would run on its parent's CPUs again, those of a later pin among them.
			return h, p.refuse(fmt.Sprintf("it was given %s, none of which its parent has, so it runs on %s instead",
				elsewhere, s.Effective),
				"set its cpuset.cpus to CPUs that its parent has")
		}
	case p.f.CPUSetVersion == cgroup.V2:
		return h, p.refuse("its cpuset cgroup "+text.Name(at)+" is shared with others", "name the cgroup that holds them all")
	default:
		if p.f.HiddenProcesses {
			return h, p.refuse("it has no cpuset cgroup of its own, and its processes are hidden here, so they cannot be moved into one "+
				"(cgroup v1 leaves processes of other PID namespaces out)", hostPIDs)
		}
		if p.foreign() {
			return h, p.refuse("some of its processes are outside our PID namespace, so they cannot be moved into a cpuset of its own",
				hostPIDs)
		}
		if h.create = p.newSets(at); h.create == nil {
			return h, p.refuse("it has no cpuset cgroup of its own, and one cannot be made inside the scope "+text.Name(p.f.Scope),
				"make the cgroup above it in the cpuset hierarchy first")
		}
		h.path = h.create[len(h.create)-1]
		// Where a scope made us go below a cgroup that the tasks are not in, its
		// CPUs bound them too.
		within := p.f.Sets[parent(h.create[0])]
		h.allowed = h.allowed.Intersection(within.Effective).Difference(p.exclusiveBeside(h.create[0]))
		if h.mems = h.mems.Intersection(within.EffectiveMems); h.mems.IsEmpty() {
			return h, p.refuse("its memory nodes are not those of "+text.Name(parent(h.create[0])), "")
		}
	}
	if elsewhere := p.elsewhere(at, len(h.create) == 0); len(elsewhere) > 0 {
		return h, p.refuse("some of its processes are in other cpusets than "+text.Name(at),
			"pin the cgroups inside it one by one", elsewhere...)
	}
	if !p.f.inScope(h.path) {
		return h, p.refuse("its cpuset "+text.Name(h.path)+" lies outside the scope "+text.Name(p.f.Scope), "")
	}
	return h, nil
}

// exclusiveBeside are the CPUs of v1's exclusive cpusets beside a cpuset: the kernel refuses a sibling
// that overlaps one (validate_change, kernel/cgroup/cpuset.c).
func (p *planner) exclusiveBeside(path string) cpuset.CPUSet {
	held := cpuset.New()
	for _, beside := range children(p.f.Sets, parent(path)) {
		if s := p.f.Sets[beside]; s.Exclusive && beside != path {
			held = held.Union(s.Configured).Union(s.Effective)
		}
	}
	return held
}

// foreign tells whether processes of the target are outside our PID namespace.
func (p *planner) foreign() bool {
	for path, g := range p.f.Groups {
		if g.Foreign && cgroup.Below(path, p.target.Group.Path) {
			return true
		}
	}
	return false
}

// newSets names the cpusets to be made below at: one beside the others, or
// where a scope binds us, the target's own path.
func (p *planner) newSets(at string) []string {
	flat := "unthrottle-" + strings.ReplaceAll(strings.Trim(p.target.Group.Path, "/"), "/", "-")
	if flat = cgroup.Join(at, flat[:min(len(flat), maxName)]); p.f.inScope(flat) && p.free(flat) {
		return []string{flat}
	}
	if !below(p.target.Group.Path, at) {
		return nil
	}
	chain := []string{p.target.Group.Path}
	for _, a := range ancestors(p.target.Group.Path) {
		if _, exists := p.f.Sets[a]; exists && !p.f.madeByUs(change.KindCgroup, a) {
			break
		}
		chain = append([]string{a}, chain...)
	}
	if !p.f.inScope(chain[0]) || !p.free(chain[len(chain)-1]) {
		return nil
	}
	return chain
}

// maxName is the longest name of a cgroup (NAME_MAX).
const maxName = 255

func (p *planner) free(path string) bool {
	_, taken := p.f.Sets[path]
	return !taken
}

// crowdedAncestors refuses where processes sit in a cgroup above the target
// (v1 allows that): they need the CPUs of all below them, and could not be
// moved off the target's. Those in the root stay, and are counted.
func (p *planner) crowdedAncestors(h targetCpuset) error {
	p.sayHidden()
	for _, a := range ancestors(h.path) {
		n := p.f.Sets[a].Procs
		if a == h.from && len(h.create) > 0 {
			n -= p.f.members(p.target.Group.Path, a) // those leave it
		}
		switch {
		case n <= 0 || a == p.top() && p.f.HiddenProcesses:
		case a == p.top():
			p.warn("%s in the root cpuset stay where they are and may still run on these CPUs (kernel threads among them)",
				text.CountOf(n, "process", "processes"))
		case p.f.CPUSetVersion == cgroup.V2 && p.f.OneTree:
			return p.refuse(fmt.Sprintf("%s above it holds %s itself, so controllers cannot be handed down (v2: processes live in leaves)",
				text.Name(a), text.CountOf(n, "process", "processes")), "move them into a cgroup of their own", a)
		default:
			return p.refuse(fmt.Sprintf("%s above it holds %s that could not be kept off its CPUs", text.Name(a),
				text.CountOf(n, "process", "processes")), "move them into a cgroup of their own, or pin that cgroup as a whole", a)
		}
	}
	return nil
}

// insideTarget refuses where the target divides its CPUs itself.
func (p *planner) insideTarget(h targetCpuset) error {
	if len(h.create) > 0 {
		return nil
	}
	for _, held := range p.f.Held {
		if set := held.CPUSet; held.For == "" && below(set, h.path) {
			return p.refuse("a cgroup inside it has CPUs by us already", "restore that one first", set)
		}
	}
	removed := p.f.removed()
	for _, path := range p.sets() {
		s := p.f.Sets[path]
		if below(path, h.path) && (p.confinedByOthers(path, removed) || s.InPartition() || p.f.CPUSetVersion == cgroup.V1 && s.Exclusive) {
			return p.refuse("a cgroup inside it has CPUs of its own, which would be lost", "pin that one instead", path)
		}
	}
	return nil
}

// enable hands the cpuset controller down to the target (v2). Where a
// transaction of ours in force did so, this one holds it too, so that the last
// rollback undoes it.
func (p *planner) enable(h targetCpuset) error {
	if p.f.CPUSetVersion != cgroup.V2 {
		return nil
	}
	path := ancestors(h.path)
	for i := len(path) - 1; i >= 0; i-- {
		at := path[i]
		g, ok := p.f.Sets[at]
		if !ok || slices.Contains(g.Subtree, cgroup.CPUSet) && !p.f.madeByUs(change.KindSubtree, at) {
			continue
		}
		if g.Type == "threaded" || g.Type == "domain invalid" || g.Type == "domain threaded" {
			return p.refuse(fmt.Sprintf("%s above it is %q: the cpuset controller cannot be handed down through it", text.Name(at), g.Type),
				"", at)
		}
		if !slices.Contains(g.Subtree, cgroup.CPUSet) && g.Procs > 0 && at != "/" {
			return p.refuse(fmt.Sprintf("%s above it holds %s itself, so the cpuset controller cannot be handed down "+
				"(v2: processes live in leaves)",
				text.Name(at), text.CountOf(g.Procs, "process", "processes")), "move them into a cgroup of their own", at)
		}
		if !p.f.inScope(at) {
			return p.refuse(fmt.Sprintf("%s does not hand the cpuset controller down, and lies outside the scope", text.Name(at)),
				"write +cpuset to its cgroup.subtree_control, or widen the scope", at)
		}
		p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindSubtree, Op: change.OpSet,
			Controller: cgroup.CPUSet, Path: at, File: cgroup.FileSubtreeControl, To: "+" + string(cgroup.CPUSet),
			Why: "its children get cpusets"})
	}
	return nil
}
