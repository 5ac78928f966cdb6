package placement

import (
	"slices"

	"k8s.io/utils/cpuset"
)

// make turns a repair into moves that each leave a valid state, and makes it.
// It is false, and nothing is changed, if that takes more moves than are
// allowed or cannot be done.
func (r *repairer) make(found *repair) bool {
	n := r.n
	s := steps{n: n, goal: found, repair: r.count, pool: n.pool, left: slices.Clone(found.who)}
	most := min(r.budget.Moves-len(r.moves), r.budget.PerCrossing*found.recovered())
	ok := true
	for len(s.left) > 0 && ok {
		ok = (s.arrive() || s.aside() || s.overlap()) && len(s.moves) <= most
	}
	if !ok {
		copy(n.s.owner, r.owner)
		copy(n.s.idle, r.idle)
		return false
	}
	n.pool = s.pool
	r.moves = append(r.moves, s.moves...)
	r.count++
	return true
}

// steps brings containers from where they are to where a repair wants them.
type steps struct {
	n      *Node
	goal   *repair
	repair int
	pool   int
	left   []Handle
	moves  []Move
}

// arrive moves one container to its place if that is free by now. The shared
// pool must not be empty even while the container has both its old and its new
// CPUs: if it would be, it goes in parts.
func (s *steps) arrive() bool {
	for i, h := range s.left {
		var fresh, stale []int32
		blocked := false
		for slot := range s.n.s.owner {
			wants, has := s.goal.owner[slot] == int32(h), s.n.s.owner[slot] == int32(h)
			switch {
			case wants && !has && s.n.s.owner[slot] != unowned:
				blocked = true
			case wants && !has:
				fresh = append(fresh, int32(slot))
			case has && !wants:
				stale = append(stale, int32(slot))
			}
		}
		if blocked {
			continue
		}
		if len(fresh)+len(stale) == 0 { // it was to make way, and has not had to
			s.left = slices.Delete(s.left, i, i+1)
			return true
		}
		if len(fresh) < s.pool {
			s.settle(h, fresh, stale, false)
			s.left = slices.Delete(s.left, i, i+1)
			return true
		}
		t := &s.n.tenants[h]
		if part := s.pool - 1; part > 0 && !t.FullCores && !t.IdleSiblings && len(fresh) == len(stale) {
			s.settle(h, fresh[:part], stale[:part], true)
			return true
		}
	}
	return false
}

// aside moves a container off CPUs that another one wants, to free ones that
// no container wants.
func (s *steps) aside() bool {
	for _, h := range s.left {
		t := &s.n.tenants[h]
		if t.FullCores || t.IdleSiblings {
			continue // a step might take part of a core
		}
		var wanted, spare []int32
		for slot, owner := range s.n.s.owner {
			goal := s.goal.owner[slot]
			switch {
			case owner == int32(h) && goal >= 0 && goal != owner:
				wanted = append(wanted, int32(slot))
			case owner == unowned && (goal < 0 || goal == int32(h)):
				spare = append(spare, int32(slot))
			}
		}
		if len(wanted) == 0 || len(spare) < len(wanted) || s.pool <= len(wanted) {
			continue
		}
		s.settle(h, spare[:len(wanted)], wanted, true)
		return true
	}
	return false
}

// overlap is the last way out: two containers share CPUs until both have moved.
func (s *steps) overlap() bool {
	fresh := 0
	for slot, owner := range s.n.s.owner {
		if s.goal.owner[slot] >= 0 && owner == unowned {
			fresh++
		}
	}
	if s.pool-fresh < 1 || len(s.left) < 2 {
		return false
	}
	for i, h := range s.left {
		from := s.n.held(h)
		m := Move{Container: s.n.tenants[h].Name, From: from, Repair: s.repair, Overlaps: i < len(s.left)-1}
		m.To, m.Idle = s.at(h, false), s.at(h, true)
		m.Cost = m.To.Difference(from).Size()
		m.Gain = s.n.touched(from) - s.n.touched(m.To)
		s.moves = append(s.moves, m)
	}
	for slot := range s.n.s.owner {
		before, after := s.n.s.owner[slot] >= 0, s.goal.owner[slot] >= 0
		if before && !after {
			s.pool++
		} else if after && !before {
			s.pool--
		}
	}
	copy(s.n.s.owner, s.goal.owner)
	copy(s.n.s.idle, s.goal.idle)
	s.left = nil
	return true
}

// at is where the repair wants a container.
func (s *steps) at(h Handle, idle bool) cpuset.CPUSet {
	return s.n.where(func(slot int) bool { return s.goal.owner[slot] == int32(h) && s.goal.idle[slot] == idle })
}

// settle gives a container some CPUs and takes others.
func (s *steps) settle(h Handle, fresh, stale []int32, step bool) {
	n := s.n
	m := Move{Container: n.tenants[h].Name, From: n.held(h), Repair: s.repair, Step: step}
	for _, slot := range stale {
		n.s.owner[slot], n.s.idle[slot] = unowned, false
	}
	for _, slot := range fresh {
		n.s.owner[slot] = int32(h)
	}
	s.pool += len(stale) - len(fresh)
	if !step {
		for slot, owner := range n.s.owner {
			if owner == int32(h) {
				n.s.idle[slot] = s.goal.idle[slot]
			}
		}
	}
	m.To = n.held(h)
	m.Idle = n.where(func(slot int) bool { return n.s.owner[slot] == int32(h) && n.s.idle[slot] })
	m.Cost = m.To.Difference(m.From).Size()
	m.Gain = n.touched(m.From) - n.touched(m.To)
	s.moves = append(s.moves, m)
}

// touched is how many sockets, NUMA nodes and L3s a set touches together.
func (n *Node) touched(set cpuset.CPUSet) int {
	var slots []int32
	for slot, id := range n.l.ids {
		if set.Contains(id) {
			slots = append(slots, int32(slot))
		}
	}
	var now [3]int
	n.count(slots, &now)
	return now[0] + now[1] + now[2]
}
