package placement

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// smallMachineCPUs is the number of CPUs below which a whole core would be too
// large a part of the machine to reserve.
const smallMachineCPUs = 4

// Reserve returns the CPUs that the system keeps by default: the core of the
// lowest CPU that is allowed and online, as far as its threads are allowed; of
// fewer than 4 such CPUs only the lowest. Isolated CPUs serve only if there are
// no others, since the scheduler moves nothing to them. It is empty only if no
// allowed CPU is online.
func Reserve(m topology.Machine, allowed cpuset.CPUSet) cpuset.CPUSet {
	online := allowed.Intersection(m.Online())
	able := online.Difference(m.Isolated())
	if able.IsEmpty() {
		able = online
	}
	if able.IsEmpty() {
		return able
	}
	lowest, _ := m.CPU(able.List()[0])
	if able.Size() < smallMachineCPUs || lowest.Core == topology.Unknown {
		return cpuset.New(lowest.ID)
	}
	return m.Group(topology.LevelCore, lowest.Core).Intersection(able)
}
