package placement

import "fmt"

// Arrive places a newcomer; its Current does not count. The error is a
// *TooFewError if the node has not got the CPUs.
func (n *Node) Arrive(c Container) (Handle, error) {
	if c.Class == "" {
		c.Class = Exclusive
	}
	if err := c.check(); err != nil {
		return 0, fmt.Errorf("placement: %w", err)
	}
	if c.Class == Floating && up(c.CPUs) > n.pool || n.pool == 0 {
		return 0, fmt.Errorf("placement: %w", &TooFewError{Wanted: up(c.CPUs), Free: n.pool, Online: len(n.l.ids)})
	}
	h := n.admit(c)
	t := &n.tenants[h]
	switch {
	case t.own > 0:
		if err := n.give(h, wish{n: t.own, me: unowned, full: c.FullCores, idle: c.IdleSiblings}); err != nil {
			n.evict(h)
			return 0, err
		}
		n.count(n.s.pick, &t.least)
		n.refloat()
	case c.Class == Floating:
		n.float(t)
	}
	return h, nil
}

// admit makes a record for a container that has no CPUs yet.
func (n *Node) admit(c Container) Handle {
	var h Handle
	if last := len(n.vacant) - 1; last >= 0 {
		h, n.vacant = n.vacant[last], n.vacant[:last]
	} else {
		n.tenants = append(n.tenants, tenant{floats: make([]int32, 0, 8)})
		h = Handle(len(n.tenants) - 1)
	}
	n.arrivals++
	t := &n.tenants[h]
	*t = tenant{Container: c, live: true, own: c.own(), arrival: n.arrivals, floats: t.floats[:0]}
	return h
}

// give chooses CPUs for a tenant and makes them its own.
func (n *Node) give(h Handle, w wish) error {
	if _, ok := n.s.choose(w); !ok {
		return n.tooFew(w)
	}
	taken := w.n
	if w.idle {
		for _, slot := range n.s.pick {
			core := n.l.core[slot]
			for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
				if s != slot && n.s.owner[s] == unowned {
					taken++
				}
			}
		}
	}
	if n.pool-taken < n.poolNeeds() {
		return n.tooFew(w)
	}
	for _, slot := range n.s.pick {
		n.take(slot, h)
		if !w.idle {
			continue
		}
		core := n.l.core[slot]
		for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
			if s != slot && n.s.owner[s] == unowned {
				n.s.owner[s], n.s.idle[s] = int32(h), true
				n.pool--
			}
		}
	}
	return nil
}

func (n *Node) take(slot int32, h Handle) {
	n.s.owner[slot], n.s.idle[slot] = int32(h), false
	n.pool--
	n.tenants[h].has++
}

// drop gives one CPU of a tenant back, with the siblings that idled for it.
func (n *Node) drop(slot int32) {
	h := n.s.owner[slot]
	n.release(slot)
	n.tenants[h].has--
	if t := &n.tenants[h]; !t.IdleSiblings && !t.FullCores {
		return
	}
	core := n.l.core[slot]
	for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
		if n.s.owner[s] == h && n.s.idle[s] {
			n.release(s)
		}
	}
}

func (n *Node) release(slot int32) {
	n.s.owner[slot], n.s.idle[slot] = unowned, false
	if n.out[slot] {
		n.s.owner[slot] = away
		return
	}
	n.pool++
}

// poolNeeds is how small the shared pool may become: never empty, and not
// smaller than what a floating container is to have.
func (n *Node) poolNeeds() int {
	least := 1
	for i := range n.tenants {
		if t := &n.tenants[i]; t.live && t.Class == Floating {
			least = max(least, up(t.CPUs))
		}
	}
	return least
}

func (n *Node) tooFew(w wish) error {
	free := max(0, n.pool-n.poolNeeds())
	few := &TooFewError{Wanted: w.n, Free: free, Online: len(n.l.ids), PoolKeeps: min(n.pool, n.poolNeeds())}
	if free >= w.n && (w.full || w.idle) {
		few.WholeCores, few.Idle = w.full, w.idle
	}
	return fmt.Errorf("placement: %w", few)
}

// Leave takes a container off the node.
func (n *Node) Leave(h Handle) {
	if !n.alive(h) {
		return
	}
	n.evict(h)
	n.refloat()
}

func (n *Node) evict(h Handle) {
	t := &n.tenants[h]
	for slot, owner := range n.s.owner {
		if owner == int32(h) {
			n.release(int32(slot))
		}
	}
	n.sink(t)
	t.live, t.has = false, 0
	n.vacant = append(n.vacant, h)
}
