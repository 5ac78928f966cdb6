package remedy

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/topology"
)

// pinnedCPUs are the CPUs that a transaction in force gives to its target alone;
// false: it is no pin.
func pinnedCPUs(h txn.InForce) (cpuset.CPUSet, bool) {
	return chosenBy(Pin, h)
}

// chosenBy are the CPUs that a transaction in force chose for its target; false:
// it is none of this kind, or only looks after one.
func chosenBy(kind Kind, h txn.InForce) (cpuset.CPUSet, bool) {
	if h.Remedy != string(kind) || h.Parameters[paramFor] != "" {
		return cpuset.CPUSet{}, false
	}
	set, err := topology.ParseList(h.Parameters[paramCPUs])
	return set, err == nil && !set.IsEmpty()
}

// keptIdle are the threads that idle for a pin in force; empty: none do.
func keptIdle(h txn.InForce) cpuset.CPUSet {
	set, err := topology.ParseList(h.Parameters[paramIdle])
	if _, ok := pinnedCPUs(h); !ok || err != nil {
		return cpuset.New()
	}
	return set
}

// Withdrawn are the CPUs that a pin in force takes from all others: those it
// has alone, and the threads beside them that idle for it. Empty: it is no pin.
func Withdrawn(h txn.InForce) cpuset.CPUSet {
	alone, _ := pinnedCPUs(h)
	return alone.Union(keptIdle(h))
}

// bySet are CPUs of each of our transactions in force, by the path of its cpuset;
// one that has none is left out.
func (f facts) bySet(of func(txn.InForce) cpuset.CPUSet) map[string]cpuset.CPUSet {
	all := map[string]cpuset.CPUSet{}
	for _, h := range f.Held {
		if set := of(h); !set.IsEmpty() {
			all[h.Parameters[paramSet]] = set
		}
	}
	return all
}

// withdrawn are the CPUs that our pins in force take from all others, by the
// path of their cpuset.
func (f facts) withdrawn() map[string]cpuset.CPUSet { return f.bySet(Withdrawn) }

// pins are our pins in force: what they hold, by the path of their cpuset.
func (f facts) pins() map[string]cpuset.CPUSet {
	return f.bySet(func(h txn.InForce) cpuset.CPUSet {
		set, _ := pinnedCPUs(h)
		return set
	})
}
