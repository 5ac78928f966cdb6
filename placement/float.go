package placement

import "github.com/unthrottle/unthrottle/topology"

// refloat gives floating containers new CPUs where theirs are no longer in the
// shared pool, or no longer as many as they are to be; the others stay.
func (n *Node) refloat() {
	for i := range n.tenants {
		t := &n.tenants[i]
		if !t.live || t.Class != Floating {
			continue
		}
		valid := len(t.floats) == min(up(t.CPUs), n.pool)
		for _, slot := range t.floats {
			valid = valid && n.s.owner[slot] == unowned
		}
		if !valid {
			n.float(t)
		}
	}
}

// sink takes a floating tenant's CPUs away.
func (n *Node) sink(t *tenant) {
	for _, slot := range t.floats {
		n.floating[slot] -= t.density
	}
	t.floats = t.floats[:0]
}

// float chooses the CPUs of a floating tenant: they cross no more sockets and
// NUMA nodes than they must; among such they are the least busy, then within
// one L3 and close together.
func (n *Node) float(t *tenant) {
	n.sink(t)
	want := min(up(t.CPUs), n.pool)
	if want == 0 {
		return
	}
	w := wish{n: want, me: unowned}
	n.s.look(w)
	node := n.nodeLevel()
	best, bestLoad := int32(-1), 0
	for level := len(n.l.levels) - 1; level >= -1; level-- {
		for d := range n.l.doms {
			if n.l.doms[d].level != level || n.s.free[d] < int32(want) {
				continue
			}
			load := n.gather(int32(d), want)
			if best < 0 || load < bestLoad {
				best, bestLoad = int32(d), load
			}
		}
		if best >= 0 && level <= node {
			break
		}
	}
	if level := n.l.doms[best].level; level < node && n.s.f.spansFirst {
		// It has to cross: then over as few as can be.
		n.s.choose(w)
		n.s.floats = append(n.s.floats[:0], n.s.pick...)
	} else {
		n.gather(best, want)
	}
	t.density = t.CPUs / float64(want)
	t.floats = append(t.floats[:0], n.s.floats...)
	for _, slot := range t.floats {
		n.floating[slot] += t.density
	}
	n.count(t.floats, &t.least)
}

// nodeLevel is the narrowest level that a floating container must not cross
// without need; -1: there is none.
func (n *Node) nodeLevel() int {
	at := -1
	for level, name := range n.l.levels {
		if name == topology.LevelSocket || name == topology.LevelNUMANode {
			at = level
		}
	}
	return at
}

// gather collects the least busy CPUs of a domain, one after the other, and
// returns how busy they are together, in tenths, so that noise does not decide.
func (n *Node) gather(d int32, want int) int {
	n.s.floats = n.s.floats[:0]
	dom := &n.l.doms[d]
	from, to := n.l.first[dom.lo], n.l.first[dom.hi]
	total := 0
	for range want {
		best, least := int32(-1), 0
		for slot := from; slot < to; slot++ {
			if n.s.owner[slot] != unowned || n.s.has(slot) {
				continue
			}
			busy := int(max(n.load[slot], n.floating[slot])*10 + 0.5)
			core := n.l.core[slot]
			for sibling := n.l.first[core]; sibling < n.l.first[core+1]; sibling++ {
				if sibling != slot && n.s.has(sibling) {
					busy += siblingBusy
				}
			}
			if best < 0 || busy < least {
				best, least = slot, busy
			}
		}
		if best < 0 {
			break
		}
		n.s.floats = append(n.s.floats, best)
		total += least
	}
	return total
}

// siblingBusy is how much a thread of one's own on the same core counts as
// load, in tenths: two threads of a core do the work of about 1.3.
const siblingBusy = 3

func (s *solver) has(slot int32) bool {
	for _, f := range s.floats {
		if f == slot {
			return true
		}
	}
	return false
}

// adoptFloating takes over a floating container with the CPUs it may use.
func (n *Node) adoptFloating(c Container) Handle {
	h := n.admit(c)
	t := &n.tenants[h]
	for slot, id := range n.l.ids {
		if c.Current.Contains(id) && n.s.owner[slot] == unowned && len(t.floats) < up(c.CPUs) {
			t.floats = append(t.floats, int32(slot))
		}
	}
	if len(t.floats) < min(up(c.CPUs), n.pool) {
		n.float(t)
		return h
	}
	t.density = t.CPUs / float64(len(t.floats))
	for _, slot := range t.floats {
		n.floating[slot] += t.density
	}
	t.least = [3]int{}
	return h
}
