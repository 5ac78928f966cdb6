package placement

import (
	"errors"
	"fmt"
)

// PlaceBeside is Place for a container of a node that runs already, where others
// share spare CPUs beside those that may be given here: the reserve, and what
// this container may not use. They count to the shared pool, so that an exclusive
// container may have all the rest. Containers of the state keep the CPUs they
// have, those without any stay without. The error is a *TooFewError if the node
// has not got the CPUs.
func PlaceBeside(s State, spare int, c Container) (Placed, error) {
	if c.Class == "" {
		c.Class = Exclusive
	}
	if err := errors.Join(s.Order.check(), c.check()); err != nil {
		return Placed{}, fmt.Errorf("placement: %w", err)
	}
	n := newNode(s)
	n.pool += spare
	for _, other := range s.Containers {
		if other.check() == nil && other.own() > 0 && !other.Current.IsEmpty() {
			n.adopt(other, 1)
		}
	}
	n.pool -= spare
	for _, other := range s.Containers {
		if other.check() == nil && other.Class == Floating && !other.Current.IsEmpty() && n.pool > 0 {
			n.adoptFloating(other)
		}
	}
	if c.Class == Floating {
		if up(c.CPUs) > n.pool {
			return Placed{}, fmt.Errorf("placement: %w", &TooFewError{Wanted: up(c.CPUs), Free: n.pool, Online: len(n.l.ids)})
		}
		h := n.admit(c)
		n.float(&n.tenants[h])
		return n.Placed(h), nil
	}
	free := n.pool
	h := n.admit(c)
	t := &n.tenants[h]
	n.pool += spare
	err := n.give(h, wish{n: t.own, me: unowned, full: c.FullCores, idle: c.IdleSiblings})
	n.pool -= spare
	if few := new(TooFewError); errors.As(err, &few) {
		few.Free, few.PoolKeeps = min(few.Free, free), max(0, few.PoolKeeps-spare)
		if few.Free >= t.own && (c.FullCores || c.IdleSiblings) {
			few.WholeCores, few.Idle = c.FullCores, c.IdleSiblings
		}
	}
	if err != nil {
		return Placed{}, err
	}
	n.count(n.s.pick, &t.least)
	return n.Placed(h), nil
}
