package placement

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// coreKey names a core. A CPU whose core the kernel does not tell is a core of
// its own.
type coreKey struct {
	core topology.ID
	cpu  int
}

func keyOf(c topology.CPU) coreKey {
	if c.Core == topology.Unknown {
		return coreKey{topology.Unknown, c.ID}
	}
	return coreKey{c.Core, 0}
}

// cores counts the cores that a set touches: those with online threads outside
// the set, and those it has whole.
func cores(m topology.Machine, cpus cpuset.CPUSet) (shared, whole int) {
	in, out := map[coreKey]bool{}, map[coreKey]bool{}
	for _, c := range m.CPUs {
		switch {
		case cpus.Contains(c.ID):
			in[keyOf(c)] = true
		case c.Online:
			out[keyOf(c)] = true
		}
	}
	for key := range in {
		if out[key] {
			shared++
		}
	}
	return shared, len(in) - shared
}
