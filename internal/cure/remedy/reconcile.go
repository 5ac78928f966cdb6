package remedy

import (
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// Reconciliation is one thing to be done for a transaction in force.
type Reconciliation struct {
	// ID is the transaction it is for.
	ID string
	// Does says what the plan does, for people. Newcomers: it moves containers off CPUs that are exclusive.
	Does      string
	Newcomers bool
	// Gone: its container is gone; the transaction is to be restored, which
	// ends it.
	Gone bool
	// Plan moves newcomers off its CPUs, or lets the system's reserve follow
	// its use, in the place of the transaction (Plan.Part); no changes: nothing
	// to do.
	Plan Plan
}

// Reconcile says what our pins need by now: containers that appeared since are
// moved off their CPUs, transactions of containers that are gone end; one that
// was started again has new cgroups and counts as gone. What cannot be moved is
// in the plan's Warnings.
func Reconcile(host hoststate.Facts) ([]Reconciliation, error) {
	f, err := decode(host)
	if err != nil {
		return nil, err
	}
	var due []Reconciliation
	for _, h := range f.Held {
		if f.over(h) || f.orphan(h) {
			due = append(due, Reconciliation{ID: h.ID, Gone: true})
			continue
		}
		if h.For != "" {
			continue
		}
		if h.Remedy == string(System) {
			if plan := followSystem(f, h); len(plan.Changes)+len(plan.Warnings) > 0 {
				due = append(due, Reconciliation{ID: h.ID, Plan: plan, Does: "the reserve follows what the host's own processes use"})
			}
			continue
		}
		if plan := newcomers(f, h); len(plan.Changes)+len(plan.Warnings) > 0 {
			c := Reconciliation{ID: h.ID, Plan: plan, Does: "newcomers moved off exclusive CPUs", Newcomers: true}
			if h.Remedy == string(Secondary) {
				c.Does, c.Newcomers = "a secondary got the shared CPUs", false
			}
			due = append(due, c)
		}
	}
	return due, nil
}

// over tells whether there is nothing left that a transaction is for.
func (f facts) over(h Held) bool {
	if _, exists := f.Groups[h.Target]; !exists {
		return true
	}
	if h.For == "" {
		return f.lost(h.ID, h.Target) || f.lost(h.ID, h.CPUSet)
	}
	for _, c := range h.Changes {
		if _, exists := f.Sets[c.Path]; exists && !f.lost(h.ID, c.Path) {
			return false
		}
	}
	return true
}

// newcomers plans to take the CPUs of a pin out of the cpusets that came later.
func newcomers(f facts, h Held) Plan {
	pinned, exclusive := pinnedCPUs(h)
	_, shared := floatingCPUs(h)
	set := h.CPUSet
	secondary := h.Remedy == string(Secondary)
	if _, exists := f.Sets[set]; !secondary && (!exclusive && !shared || !exists) {
		return Plan{}
	}
	target, known := f.container(h.Target)
	if !known {
		target.Container = container.Container{Group: cgroup.Group{Path: h.Target, CPUSetPath: set}, Name: h.Target}
	}
	p := &planner{f: f, r: Request{Kind: Kind(h.Remedy)}, target: target.Container,
		plan: Plan{Target: target.Container, Remedy: Kind(h.Remedy), CPUs: pinned,
			Parameters: map[string]string{ParamUpkeep: h.ID, paramCPUs: h.Parameters[paramCPUs], paramSet: set}}}
	if secondary {
		p.grantSecondary(h, target)
		p.viaSystemd()
		return p.plan
	}
	p.moveRestartedProcesses(h, target, set)
	if !sharedCPUs(h).IsEmpty() {
		p.sharedWithSets = f.lentSets(h)
	}
	if !exclusive {
		p.viaSystemd()
		return p.plan
	}
	pinned = h.Withdrawn()
	inside, _ := p.movers(targetCpuset{path: set}, pinned)
	removed := f.removed()
	for _, path := range inside {
		s := f.Sets[path]
		if f.uses(path).Intersection(pinned).IsEmpty() && pinned.IsSubsetOf(removed[path]) {
			continue
		}
		_, none := p.leftWithout(path, pinned, nil)
		switch {
		case none || p.confinedByOthers(path, removed) || s.InPartition() || s.Exclusive && f.CPUSetVersion == cgroup.V1:
			p.warn("%s got %s from another program, and %s has these CPUs: it is left alone", text.Name(path), s.Effective, target.Name)
		case pinned.Intersection(removed[path]).Equals(pinned):
			// Ours already: another program wrote it since. That is drift, which status
			// shows; taking it out again would be the same change twice.
			p.warn("%s got CPUs of %s back from another program", text.Name(path), target.Name)
		default:
			p.takeOut(path, pinned, "appeared later; off the CPUs of "+target.Name)
		}
	}
	p.viaSystemd()
	return p.plan
}

// moveRestartedProcesses moves the target's processes into the cpuset that a pin made for it,
// where they came into being outside: a unit that was started again.
func (p *planner) moveRestartedProcesses(h Held, target hoststate.Container, set string) {
	from := target.Group.CPUSetPath
	for _, c := range h.Changes {
		if c.Kind == change.KindTask && c.To == set && p.f.HiddenProcesses {
			p.warn("processes of %s that appeared later cannot be seen here, so that they are not moved into its "+
				"cpuset; %s", target.Name, hostPIDs)
			continue
		}
		if c.Kind != change.KindTask || c.To != set || from == set || p.f.members(h.Target, from) == 0 {
			continue
		}
		c.From, c.Why = from, "appeared later; into its own cpuset"
		p.plan.Changes = append(p.plan.Changes, c)
	}
}
