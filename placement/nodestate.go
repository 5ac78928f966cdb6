package placement

import (
	"slices"

	"k8s.io/utils/cpuset"
)

// State returns the node as a value: what NewNode makes the same node of.
func (n *Node) State() State {
	s := State{Machine: n.l.machine, Order: slices.Clone(n.order)}
	s.Machine.CPUs = slices.Clone(s.Machine.CPUs)
	s.Reserved = n.where(func(slot int) bool { return n.reserved[slot] })
	s.Unavailable = n.where(func(slot int) bool {
		c, _ := n.l.machine.CPU(n.l.ids[slot])
		return n.out[slot] && !n.reserved[slot] && !c.Isolated
	})
	own, idle := make([][]int, len(n.tenants)), make([][]int, len(n.tenants))
	for slot, owner := range n.s.owner {
		switch {
		case owner < 0:
		case n.s.idle[slot]:
			idle[owner] = append(idle[owner], n.l.ids[slot])
		default:
			own[owner] = append(own[owner], n.l.ids[slot])
		}
	}
	for _, h := range n.byArrival() {
		t := &n.tenants[h]
		c := t.Container
		c.Current, c.Idle = cpuset.New(own[h]...), cpuset.New(idle[h]...)
		if c.Class == Floating {
			c.Current = cpuset.New(n.AppendCPUs(nil, h)...)
		}
		s.Containers = append(s.Containers, c)
	}
	for slot, id := range n.l.ids {
		if n.load[slot] >= 0 {
			if s.Load == nil {
				s.Load = map[int]float64{}
			}
			s.Load[id] = n.load[slot]
		}
	}
	return s
}
