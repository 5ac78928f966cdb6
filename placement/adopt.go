package placement

import "fmt"

// Adopt takes over a container that has CPUs already, from any chooser. The
// error tells which of them it cannot have; it has the others then.
func (n *Node) Adopt(c Container) (Handle, error) {
	if c.Class == "" {
		c.Class = Exclusive
	}
	if err := c.check(); err != nil {
		return 0, fmt.Errorf("placement: %w", err)
	}
	h, missing := n.adoptAll(c)
	if !missing.IsEmpty() {
		return h, fmt.Errorf("placement: CPUs %s are an earlier container's too, or reserved, offline or not there", missing)
	}
	return h, nil
}

// adopt takes over a container with the CPUs it has, as long as the shared pool
// keeps some.
func (n *Node) adopt(c Container, keep int) Handle {
	h := n.admit(c)
	t := &n.tenants[h]
	if t.own > 0 {
		n.leastAt(t)
	}
	for slot, id := range n.l.ids {
		if n.s.owner[slot] == unowned && t.own > 0 && n.pool > keep && c.Current.Contains(id) {
			n.take(int32(slot), h)
		}
	}
	for slot, id := range n.l.ids {
		if n.s.owner[slot] == unowned && (c.IdleSiblings || c.FullCores) && n.pool > keep && c.Idle.Contains(id) {
			n.s.owner[slot], n.s.idle[slot] = int32(h), true
			n.pool--
		}
	}
	return h
}

// leastAt finds how many groups a tenant has to touch as things are now.
func (n *Node) leastAt(t *tenant) {
	t.least = [3]int{}
	if _, ok := n.s.choose(wish{n: t.own, me: unowned, full: t.FullCores, idle: t.IdleSiblings}); ok {
		n.count(n.s.pick, &t.least)
	}
}
