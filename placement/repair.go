package placement

import (
	"cmp"
	"slices"

	"k8s.io/utils/cpuset"
)

// A repairer finds repairs one after the other: a container that crosses moves
// to where it does not, and those in its way move elsewhere.
type repairer struct {
	n      *Node
	budget Budget
	moves  []Move
	count  int // repairs made
	owner  []int32
	idle   []bool
}

// repair is a way to recover crossings: where those concerned are afterwards.
type repair struct {
	who   []Handle
	owner []int32
	idle  []bool
	gain  [3]int // excess groups fewer, per level
	cpus  int    // moved
}

// recovered is how many crossings a repair recovers: at the level where it
// recovers most.
func (r *repair) recovered() int { return max(r.gain[0], r.gain[1], r.gain[2]) }

// better prefers wider levels, then more of them, then fewer moved CPUs.
func (r *repair) better(than *repair) bool {
	if than == nil {
		return true
	}
	if c := slices.Compare(r.gain[:], than.gain[:]); c != 0 {
		return c > 0
	}
	return cmp.Or(cmp.Compare(r.cpus, than.cpus), cmp.Compare(len(r.who), len(than.who))) < 0
}

// once makes one repair; false if there is none.
func (r *repairer) once() bool {
	n := r.n
	type crossing struct {
		h      Handle
		excess [3]int
	}
	var crossings []crossing
	for i := range n.tenants {
		t := &n.tenants[i]
		if !t.live || t.own == 0 || t.has != t.own {
			continue
		}
		if e, _ := n.Excess(Handle(i)); e != [3]int{} && t.Immovable == "" {
			crossings = append(crossings, crossing{Handle(i), e})
		}
	}
	slices.SortFunc(crossings, func(a, b crossing) int {
		return cmp.Or(slices.Compare(b.excess[:], a.excess[:]), cmp.Compare(n.tenants[a.h].own, n.tenants[b.h].own),
			cmp.Compare(n.tenants[a.h].arrival, n.tenants[b.h].arrival))
	})
	for _, c := range crossings {
		if best := r.find(c.h); best != nil && r.make(best) {
			return true
		}
	}
	return false
}

// find looks for the best repair of one container.
func (r *repairer) find(h Handle) *repair {
	n := r.n
	r.owner, r.idle = append(r.owner[:0], n.s.owner...), append(r.idle[:0], n.s.idle...)
	best := r.try(h, -1, nil, nil)
	for level := range n.l.levels {
		if !n.l.isSpan(level) {
			continue
		}
		for _, d := range n.l.at[level] {
			if n.l.doms[d].cpus < n.tenants[h].own {
				continue
			}
			best = r.clear(h, d, best)
		}
	}
	return best
}

// The most that are looked at to make way in one domain, and the most ways.
const (
	mostInTheWay = 12
	mostWays     = 60
)

// clear tries to make room for a container in a domain: one, two or three
// others leave it, those with the fewest CPUs first.
func (r *repairer) clear(h Handle, d int32, best *repair) *repair {
	n := r.n
	type inTheWay struct {
		h    Handle
		here int
	}
	var others []inTheWay
	missing := n.tenants[h].own
	here := map[int32]int{}
	for slot := n.l.first[n.l.doms[d].lo]; slot < n.l.first[n.l.doms[d].hi]; slot++ {
		switch owner := n.s.owner[slot]; {
		case owner == unowned || owner == int32(h):
			missing--
		case owner >= 0 && n.tenants[owner].Immovable == "" && n.tenants[owner].has == n.tenants[owner].own:
			here[owner]++
		}
	}
	if missing <= 0 {
		return r.try(h, d, nil, best)
	}
	for owner, cpus := range here {
		if n.tenants[owner].own < n.tenants[h].own || n.tenants[owner].own == cpus {
			others = append(others, inTheWay{Handle(owner), cpus})
		}
	}
	slices.SortFunc(others, func(a, b inTheWay) int {
		return cmp.Or(cmp.Compare(n.tenants[a.h].own, n.tenants[b.h].own), cmp.Compare(b.here, a.here), cmp.Compare(a.h, b.h))
	})
	if len(others) > mostInTheWay {
		others = append(others[:mostInTheWay/2], others[len(others)-mostInTheWay/2:]...)
	}
	ways := 0
	for i, a := range others {
		if a.here >= missing {
			best = r.try(h, d, []Handle{a.h}, best)
			ways++
		}
		for j, b := range others[:i] {
			if ways < mostWays && a.here+b.here >= missing {
				best = r.try(h, d, []Handle{a.h, b.h}, best)
				ways++
			}
			for _, c := range others[:j] {
				if ways < mostWays && a.here+b.here < missing && a.here+b.here+c.here >= missing {
					best = r.try(h, d, []Handle{a.h, b.h, c.h}, best)
					ways++
				}
			}
		}
	}
	return best
}

// try moves a container to a domain (-1: anywhere) and others out of its way,
// sees what that brings, and puts all back.
func (r *repairer) try(h Handle, d int32, others []Handle, best *repair) *repair {
	n := r.n
	who := append([]Handle{h}, others...)
	var before, after [3]int
	for _, w := range who {
		add(&before, n, w)
	}
	for slot, owner := range n.s.owner {
		if owner >= 0 && slices.Contains(who[1:], Handle(owner)) {
			n.s.owner[slot], n.s.idle[slot] = unowned, false
		}
	}
	ok := r.place(h, d)
	slices.SortFunc(who[1:], func(a, b Handle) int { return cmp.Compare(n.tenants[b].own, n.tenants[a].own) })
	for _, w := range who[1:] {
		ok = ok && r.place(w, -1)
	}
	if ok {
		for _, w := range who {
			add(&after, n, w)
		}
		found := repair{who: who}
		worse := false
		for level := range after {
			found.gain[level] = before[level] - after[level]
			worse = worse || found.gain[level] < 0
		}
		for slot, owner := range n.s.owner {
			if owner >= 0 && owner != r.owner[slot] {
				found.cpus++
			}
		}
		moves := len(r.moves) + len(who)
		affordable := len(who) <= r.budget.PerCrossing*found.recovered() && moves <= r.budget.Moves
		if !worse && found.recovered() > 0 && affordable && found.better(best) {
			found.owner, found.idle = slices.Clone(n.s.owner), slices.Clone(n.s.idle)
			best = &found
		}
	}
	copy(n.s.owner, r.owner)
	copy(n.s.idle, r.idle)
	return best
}

func add(sum *[3]int, n *Node, h Handle) {
	e, _ := n.Excess(h)
	for i := range sum {
		sum[i] += e[i]
	}
}

// place gives a container that was moved out of the way, or that moves, its
// CPUs in a domain; -1: anywhere.
func (r *repairer) place(h Handle, d int32) bool {
	n := r.n
	t := &n.tenants[h]
	w := wish{n: t.own, me: int32(h), full: t.FullCores, idle: t.IdleSiblings}
	ok := false
	if d < 0 {
		_, ok = n.s.choose(w)
	} else {
		ok = n.s.chooseIn(w, d)
	}
	if !ok {
		return false
	}
	for slot, owner := range n.s.owner {
		if owner == int32(h) {
			n.s.owner[slot], n.s.idle[slot] = unowned, false
		}
	}
	for _, slot := range n.s.pick {
		n.s.owner[slot] = int32(h)
	}
	if t.IdleSiblings {
		for _, slot := range n.s.pick {
			core := n.l.core[slot]
			for s := n.l.first[core]; s < n.l.first[core+1]; s++ {
				if n.s.owner[s] == unowned {
					n.s.owner[s], n.s.idle[s] = int32(h), true
				}
			}
		}
	}
	return true
}

// chooseIn finds the CPUs for a wish within one domain.
func (s *solver) chooseIn(w wish, d int32) bool {
	s.look(w)
	s.pick = s.pick[:0]
	s.best = impossible
	if s.limit[d] < int32(w.n) {
		return false
	}
	s.consider(d, int32(w.n))
	s.pick, s.chosen = s.chosen, s.pick
	return s.best.can()
}

func (n *Node) held(h Handle) cpuset.CPUSet {
	return n.where(func(slot int) bool { return n.s.owner[slot] == int32(h) && !n.s.idle[slot] })
}
