package placement

import (
	"fmt"
	"slices"
)

// Resize gives a container more CPUs or fewer. It keeps those it has when it
// grows, and keeps of them when it shrinks. On an error all is as before.
func (n *Node) Resize(h Handle, cpus float64) error {
	if !n.alive(h) {
		return fmt.Errorf("placement: no container has the handle %d", h)
	}
	t := &n.tenants[h]
	changed := t.Container
	changed.CPUs = cpus
	if err := changed.check(); err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	if t.Class == Floating && up(cpus) > n.pool {
		return n.tooFew(wish{n: up(cpus)})
	}
	before, own := t.CPUs, t.own
	t.CPUs, t.own = cpus, changed.own()
	if err := n.settle(h); err != nil {
		t.CPUs, t.own = before, own
		return err
	}
	if t.own > own {
		n.count(n.slots(h), &t.least)
	}
	if t.Class == Floating {
		n.float(t)
	}
	n.refloat()
	return nil
}

// mend settles a tenant that lost CPUs or never had them all. One with whole
// cores may have to leave those of which it has a part.
func (n *Node) mend(h Handle) error {
	err := n.settle(h)
	t := &n.tenants[h]
	if err == nil || t.Immovable != "" || !t.FullCores && !t.IdleSiblings {
		return err
	}
	w := wish{n: t.own, me: int32(h), full: t.FullCores, idle: t.IdleSiblings}
	if _, ok := n.s.choose(w); !ok {
		return err
	}
	owner, idle, pool, has := slices.Clone(n.s.owner), slices.Clone(n.s.idle), n.pool, t.has
	n.keepOnly(h, nil)
	if again := n.give(h, w); again != nil {
		copy(n.s.owner, owner)
		copy(n.s.idle, idle)
		n.pool, t.has = pool, has
		return err
	}
	return nil
}

// settle makes the CPUs that a tenant has those that it is to have.
func (n *Node) settle(h Handle) error {
	t := &n.tenants[h]
	w := wish{me: int32(h), full: t.FullCores, idle: t.IdleSiblings}
	switch {
	case t.own > t.has:
		w.n, w.keep = t.own-t.has, true
		return n.give(h, w)
	case t.own < t.has && t.own == 0:
		for slot, owner := range n.s.owner {
			if owner == int32(h) && !n.s.idle[slot] {
				n.drop(int32(slot))
			}
		}
	case t.own < t.has:
		w.n, w.within = t.own, true
		if _, ok := n.s.choose(w); !ok {
			return n.tooFew(w)
		}
		n.keepOnly(h, n.s.pick)
	}
	return nil
}

// keepOnly drops all CPUs of a tenant but some.
func (n *Node) keepOnly(h Handle, slots []int32) {
	const marked = int32(-100)
	for _, slot := range slots {
		n.s.owner[slot] = marked
	}
	for slot, owner := range n.s.owner {
		if owner == int32(h) && !n.s.idle[slot] {
			n.drop(int32(slot))
		}
	}
	for _, slot := range slots {
		n.s.owner[slot] = int32(h)
	}
}
