package placement

import (
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// ChooseFree runs the solver alone, without a node that keeps a shared pool:
// the best n of the free CPUs in the default order. False: there are fewer.
func ChooseFree(m topology.Machine, free cpuset.CPUSet, n int, prefer topology.Kind) (cpuset.CPUSet, bool) {
	l := newLayout(m)
	s := newSolver(l, DefaultOrder())
	for slot, id := range l.ids {
		if c, _ := m.CPU(id); c.Isolated || !free.Contains(id) {
			s.owner[slot] = away
		}
	}
	if _, ok := s.choose(wish{n: n, me: unowned, efficient: prefer == topology.KindEfficiency}); !ok {
		return cpuset.New(), false
	}
	ids := make([]int, 0, n)
	for _, slot := range s.pick {
		ids = append(ids, l.ids[slot])
	}
	return cpuset.New(ids...), true
}
