package remedy

import (
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// A Sharing is what one pin in force lends, and to whom it goes.
type Sharing struct {
	// ID is the pin's transaction, Target the owner's path.
	ID, Target string
	CPUs       cpuset.CPUSet // what it lends
	// To are the paths of the secondaries that have some of it.
	To []string
	// Revoked is the transaction that took it back from them; "": none.
	Revoked string
}

// Sharings lists our pins in force that share their CPUs, oldest first. The error is an *Unreadable.
func Sharings(held []txn.InForce) ([]Sharing, error) {
	f, err := decode(hoststate.Facts{Held: held})
	if err != nil {
		return nil, err
	}
	live := map[string]bool{}
	for _, h := range f.Held {
		live[h.ID] = true
	}
	var sharings []Sharing
	for _, h := range f.Held {
		set := sharedCPUs(h)
		if set.IsEmpty() {
			continue
		}
		l := Sharing{ID: h.ID, Target: h.Target, CPUs: set}
		got := map[string]bool{}
		for _, other := range f.Held {
			of := other.For
			switch {
			case of != "" && !live[of]:
			case of == h.ID && !other.Revoked.IsEmpty():
				l.Revoked = other.ID
			case !got[other.Target] && !borrowedCPUs(other).Intersection(set).IsEmpty():
				got[other.Target] = true
				l.To = append(l.To, other.Target)
			}
		}
		sharings = append(sharings, l)
	}
	return sharings, nil
}

// Revoke plans to remove the shared CPUs of a pin in force from all secondaries.
// While the plan is in force the CPUs are shared with no secondary; its rollback
// shares them again. No changes: no secondary has them. The plan belongs to the pin,
// and moves with it.
func Revoke(host hoststate.Facts, id string) (Plan, error) {
	f, err := decode(host)
	if err != nil {
		return Plan{}, err
	}
	for _, h := range f.Held {
		alone := sharedCPUs(h)
		if h.ID != id || alone.IsEmpty() {
			continue
		}
		target, known := f.container(h.Target)
		if !known {
			target.Container = container.Container{Group: cgroup.Group{Path: h.Target, CPUSetPath: h.CPUSet}, Name: h.Name}
		}
		p := &planner{f: f, r: Request{Kind: Pin}, target: target.Container, plan: Plan{Target: target.Container, Remedy: Pin,
			Parameters: map[string]string{ParamUpkeep: h.ID, paramSet: h.CPUSet, paramRevoked: alone.String()}}}
		given := f.lastly(change.OpAddCPUs)
		for _, path := range p.sets() {
			if back := given[path].Intersection(alone); !back.IsEmpty() && f.inScope(path) {
				p.takeOut(path, back, "revoked: sharing it may slow "+target.Name)
			}
		}
		p.viaSystemd()
		return p.plan, nil
	}
	return Plan{}, nil
}

// revoked reports whether the shared CPUs of a pin are revoked.
func (f facts) revoked(h Held) bool {
	for _, other := range f.Held {
		if !other.Revoked.IsEmpty() && other.For == h.ID {
			return true
		}
	}
	return false
}

// orphan tells whether a transaction looked after one that is not in force any
// more. Memory nodes are looked after whichever transaction gave the CPUs.
func (f facts) orphan(h Held) bool {
	of := h.For
	return of != "" && h.Mems == nil && !slices.ContainsFunc(f.Held, func(t Held) bool { return t.ID == of })
}
