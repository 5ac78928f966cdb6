package remedy

import (
	"k8s.io/utils/cpuset"
)

// pinnedCPUs are the CPUs that a transaction in force gives to its target alone;
// false: it is no pin.
func pinnedCPUs(h Held) (cpuset.CPUSet, bool) {
	return chosenBy(Pin, h)
}

// chosenBy are the CPUs that a transaction in force chose for its target; false:
// it is none of this kind, or only looks after one.
func chosenBy(kind Kind, h Held) (cpuset.CPUSet, bool) {
	if h.Remedy != string(kind) || h.For != "" {
		return cpuset.CPUSet{}, false
	}
	return h.CPUs, !h.CPUs.IsEmpty()
}

// keptIdle are the threads that idle for a pin in force; empty: none do.
func keptIdle(h Held) cpuset.CPUSet {
	if _, ok := pinnedCPUs(h); !ok || h.Idle == nil {
		return cpuset.New()
	}
	return *h.Idle
}

// Withdrawn are the CPUs that a pin in force takes from all others: those it
// has alone, and the threads beside them that idle for it. Empty: it is no pin.
func (h Held) Withdrawn() cpuset.CPUSet {
	alone, _ := pinnedCPUs(h)
	return alone.Union(keptIdle(h))
}

// bySet are CPUs of each of our transactions in force, by the path of its cpuset;
// one that has none is left out.
func (f facts) bySet(pick func(Held) cpuset.CPUSet) map[string]cpuset.CPUSet {
	all := map[string]cpuset.CPUSet{}
	for _, h := range f.Held {
		if set := pick(h); !set.IsEmpty() {
			all[h.CPUSet] = set
		}
	}
	return all
}

// withdrawn are the CPUs that our pins in force take from all others, by the
// path of their cpuset.
func (f facts) withdrawn() map[string]cpuset.CPUSet { return f.bySet(Held.Withdrawn) }

// pins are our pins in force: what they hold, by the path of their cpuset.
func (f facts) pins() map[string]cpuset.CPUSet {
	return f.bySet(func(h Held) cpuset.CPUSet {
		set, _ := pinnedCPUs(h)
		return set
	})
}
