package remedy

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

// takesPlace makes the plan one that replaces what is in force. What is confined
// no longer is let go; where nothing differs, nothing is left of the plan.
func (p *planner) takesPlace() {
	h, ok := p.f.system()
	if !ok {
		return
	}
	same := p.plan.Parameters[paramCPUs] == h.Parameters[paramCPUs] && p.plan.Parameters[paramAsked] == h.Parameters[paramAsked]
	named, was := map[string]bool{}, p.f.systemSets()
	for i, c := range p.plan.Changes {
		if c.File == cgroup.FileCPUs {
			named[c.Path], p.plan.Changes[i].From = true, ""
			_, held := was[c.Path]
			same = same && held
		}
	}
	for _, path := range sorted(was) {
		if _, exists := p.f.Sets[path]; exists && !named[path] {
			same = false
			// No CPUs to add: the value is again what it was before us.
			p.plan.Changes = append(p.plan.Changes, change.Change{Kind: change.KindFile, Op: change.OpAddCPUs, Controller: cgroup.CPUSet,
				Path: path, File: cgroup.FileCPUs, Why: "no longer confined"})
		}
	}
	if same {
		p.plan.Changes = nil
		return
	}
	p.plan.Replaces = []string{h.ID}
}

// system is the transaction that confines the host's own processes.
func (f facts) system() (Held, bool) {
	i := slices.IndexFunc(f.Held, func(h Held) bool { return h.Remedy == string(System) && h.Target == f.systemTop() })
	if i < 0 {
		return Held{}, false
	}
	return f.Held[i], true
}

// systemConfined are the CPUs that the host's own processes are confined to;
// empty: they are not.
func (f facts) systemConfined() cpuset.CPUSet {
	set := cpuset.New()
	for _, h := range f.Held {
		if h.Remedy == string(System) {
			set = set.Union(h.CPUs)
		}
	}
	return set
}

// systemSets are the cpusets that we confined for the host's own processes.
func (f facts) systemSets() map[string]bool {
	all := map[string]bool{}
	for _, h := range f.Held {
		for _, c := range h.Changes {
			if h.Remedy == string(System) && c.Op == change.OpSet && isCPUs(c.File) && !f.lost(h.ID, c.Path) {
				all[c.Path] = true
			}
		}
	}
	return all
}

// followSystem plans the reserve that the use of the host's own processes asks
// for by now; no changes: they have it, or it cannot be told.
func followSystem(f facts, h Held) Plan {
	if !f.inScope(h.Target) {
		return Plan{}
	}
	var r Request
	if h.Asked {
		r.Reserve = &h.CPUs
	}
	f.Scope = h.Target
	plan, err := ConfineSystem(f.Facts, r)
	if err != nil {
		return Plan{Warnings: []string{fmt.Sprintf("the reserve stays %s: %v", h.CPUs, err)}}
	}
	if len(plan.Changes) == 0 || fewerThan(plan, h) && f.At.Sub(h.Since) < calm {
		return Plan{}
	}
	return plan
}

// calm is how long a reserve is kept before it follows a lower use: load comes and
// goes, and each change moves the host's processes.
const calm = time.Minute

func fewerThan(plan Plan, h Held) bool {
	want, err := topology.ParseList(plan.Parameters[paramCPUs])
	return err == nil && want.Size() < h.CPUs.Size()
}
