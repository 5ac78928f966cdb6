package placement

import (
	"fmt"
	"slices"
)

// Offline takes a CPU off the node. Its owner gets another one, close to those
// it keeps; if there is none it keeps what it has, and the error says so.
func (n *Node) Offline(cpu int) error {
	slot, err := n.slot(cpu)
	if err != nil || n.s.owner[slot] == off {
		return err
	}
	owner, idled := n.s.owner[slot], n.s.idle[slot]
	switch {
	case owner >= 0 && !idled:
		n.drop(slot)
		if !n.out[slot] {
			n.pool--
		}
	case owner >= 0:
		n.s.idle[slot] = false
	case owner == unowned:
		n.pool--
	}
	n.s.owner[slot] = off
	if owner >= 0 && !idled {
		err = n.mend(Handle(owner))
	}
	if n.pool == 0 {
		n.refill()
	}
	n.refloat()
	return err
}

// refill takes a CPU for the shared pool off a container when the pool's last
// one has gone: off the one with the most, the youngest of equals. It lacks one
// then, until a CPU comes back. Whole cores are broken up last.
func (n *Node) refill() {
	from := int32(-1)
	worth := func(t *tenant) []uint64 {
		loose := uint64(1)
		if t.FullCores || t.IdleSiblings {
			loose = 0
		}
		return []uint64{loose, uint64(t.has), t.arrival}
	}
	for i := range n.tenants {
		t := &n.tenants[i]
		if t.live && t.has > 0 && (from < 0 || slices.Compare(worth(t), worth(&n.tenants[from])) > 0) {
			from = int32(i)
		}
	}
	if from < 0 {
		return
	}
	slots := n.slots(Handle(from))
	last := slots[len(slots)-1]
	n.drop(last)
	core := n.l.core[last]
	for s := n.l.first[core]; s < n.l.first[core+1] && n.tenants[from].FullCores; s++ {
		if n.s.owner[s] == from {
			n.drop(s)
		}
	}
}

// Online brings a CPU back. Containers that lacked CPUs get theirs, the oldest
// first. A CPU that the node was made without is an error: make the node anew
// from its state and the machine as it is now.
func (n *Node) Online(cpu int) error {
	slot, err := n.slot(cpu)
	if err != nil || n.s.owner[slot] != off {
		return err
	}
	n.release(slot)
	n.rejoin(slot)
	n.repay()
	n.refloat()
	return nil
}

// rejoin gives a CPU that came back to the container that has the rest of its core and is
// to be alone on it: as one of its CPUs if it lacks one, else to idle.
func (n *Node) rejoin(slot int32) {
	core := n.l.core[slot]
	for s := n.l.first[core]; s < n.l.first[core+1] && n.s.owner[slot] == unowned; s++ {
		owner := n.s.owner[s]
		if owner < 0 {
			continue
		}
		switch t := &n.tenants[owner]; {
		case t.FullCores && t.has < t.own:
			n.take(slot, Handle(owner))
		case t.FullCores || t.IdleSiblings:
			n.s.owner[slot], n.s.idle[slot] = owner, true
			n.pool--
		}
	}
}

// repay gives CPUs to tenants that have fewer than they are to have.
func (n *Node) repay() {
	for i := range n.tenants {
		if t := &n.tenants[i]; t.live && t.has < t.own {
			// Who lacks more than there is waits for the next CPU.
			_ = n.mend(Handle(i))
		}
	}
}

func (n *Node) slot(cpu int) (int32, error) {
	if cpu < 0 || cpu >= len(n.l.slotOf) || n.l.slotOf[cpu] < 0 {
		return 0, fmt.Errorf("placement: CPU %d was not online when the node was made: make it anew", cpu)
	}
	return n.l.slotOf[cpu], nil
}
