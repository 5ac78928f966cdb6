package placement

import (
	"math/bits"

	"github.com/unthrottle/unthrottle/topology"
)

// Kinds of cores, as a wish names them.
const (
	kindPerformance int8 = 1
	kindEfficiency  int8 = 2
)

func kindNumber(k topology.Kind) int8 {
	switch k {
	case topology.KindPerformance:
		return kindPerformance
	case topology.KindEfficiency:
		return kindEfficiency
	}
	return 0
}

// choose finds the CPUs for a wish and leaves their slots in pick. It is false
// if there are not enough. On machines with two kinds of cores it looks for the
// best of either kind and of both together, and takes the best of these.
func (s *solver) choose(w wish) (cost, bool) {
	if !s.l.manyKind {
		return s.chooseOf(w)
	}
	first, second := kindPerformance, kindEfficiency
	if w.efficient {
		first, second = second, first
	}
	best, of := impossible, int8(0)
	for rank, kind := range [3]int8{first, second, 0} {
		w.kind = kind
		c, ok := s.chooseOf(w)
		if !ok {
			continue
		}
		odd := s.f.kind.times(rank)
		if c = c.plus(&odd); c.less(&best) {
			best, of = c, kind
			s.kept = append(s.kept[:0], s.pick...)
		}
	}
	s.w.kind = of
	s.pick = append(s.pick[:0], s.kept...)
	return best, best.can()
}

func (s *solver) chooseOf(w wish) (cost, bool) {
	s.look(w)
	s.pick = s.pick[:0]
	n := int32(w.n)
	if n < 1 || s.avail[0] < n {
		return impossible, false
	}
	s.best = impossible
	from := -1
	if s.f.spansFirst && !w.keep {
		from = s.f.lastSpan
	}
	// Where the spans decide first, a domain that holds it all beats any that
	// do not, and the narrowest such level beats the wider ones.
	for level := from; level >= 0; level-- {
		if !s.l.isSpan(level) {
			continue
		}
		for _, d := range s.l.at[level] {
			if s.limit[d] >= n {
				s.consider(d, n)
			}
		}
		if s.best.can() {
			break
		}
	}
	if !s.best.can() {
		s.consider(0, n)
	}
	if !s.best.can() {
		return s.best, false
	}
	if s.within != s.l.leafOf[s.l.doms[s.within].lo] {
		s.vary(n)
	}
	s.pick, s.chosen = s.chosen, s.pick
	return s.best, true
}

// consider solves a domain and keeps its choice if it is the best so far.
func (s *solver) consider(d, n int32) {
	if s.solve(d, n, true) < n || !s.tabs[d][n].can() {
		return
	}
	total := s.tabs[d][n]
	if !total.less(&s.best) {
		return // the rest only adds to it
	}
	s.pick = s.pick[:0]
	clear(s.take)
	leaf := s.l.doms[d].count == 0
	if leaf {
		s.take[d] = n
	} else {
		s.collect(d, n)
	}
	for up := s.l.doms[d].parent; up >= 0; up = s.l.doms[up].parent {
		s.take[up] = n
		if level := s.l.doms[up].level; level >= 0 {
			// What the wider domains cost, alike for all that lie in them.
			left := s.f.left[level].times(int(s.free[up] - n))
			total = total.plus(&left)
			if s.mine[up] == 0 {
				total = total.plus(&s.f.span[level])
			}
		}
	}
	s.addRoom(&total)
	s.addDistance(&total)
	if !total.less(&s.best) {
		return
	}
	if leaf {
		s.collect(d, n)
	}
	s.best, s.within, s.bestFar = total, d, s.far
	copy(s.bestLost, s.lost)
	s.chosen, s.pick = s.pick, s.chosen
}

// addRoom adds by how much the choice in take shrinks the largest request that
// fits in one domain, level by level.
func (s *solver) addRoom(total *cost) {
	clear(s.lost)
	for level, unit := range s.f.room {
		if unit == (cost{}) {
			continue
		}
		before, after := int32(0), int32(0)
		for _, d := range s.l.at[level] {
			before = max(before, s.free[d])
			after = max(after, s.free[d]-s.take[d])
		}
		s.lost[level] = before - after
		loss := unit.times(int(before - after))
		*total = total.plus(&loss)
	}
}

// addDistance adds the distances between the NUMA nodes that are touched.
func (s *solver) addDistance(total *cost) {
	sum := int32(0)
	for i, a := range s.l.nodes {
		if s.take[a]+s.mine[a] == 0 {
			continue
		}
		for j := range i {
			if b := s.l.nodes[j]; s.take[b]+s.mine[b] > 0 {
				sum += s.l.distance[i][j]
			}
		}
	}
	s.far = sum
	if sum > 0 {
		far := s.f.distance.times(int(sum))
		*total = total.plus(&far)
	}
}

// vary tries what the tables cannot add up, room and distance: it solves again
// with domains spared. They are exact where they come first; behind other
// objectives they are found among the choices tried here.
func (s *solver) vary(n int32) {
	d := s.within
	tries := min(mostTries, effort/(int(n)*int(s.avail[d])))
	if !s.f.spansFirst {
		tries = max(1, tries)
	}
	for level := range s.l.levels {
		if !s.l.isSpan(level) {
			continue
		}
		most := int32(0)
		for _, g := range s.l.at[level] {
			most = max(most, s.free[g])
		}
		needed := max(0, most-(s.free[0]-n)) // as much is lost whatever is chosen
		for _, g := range s.l.at[level] {
			inside := s.l.doms[g].lo >= s.l.doms[d].lo && s.l.doms[g].hi <= s.l.doms[d].hi && g != d
			if !inside || s.free[g] != most || s.avail[g] == 0 {
				continue
			}
			if tries == 0 || s.bestLost[level] <= needed {
				break
			}
			tries--
			// As much of it is spared as the others can give in its stead.
			s.cap(g, max(0, n-(s.avail[d]-s.avail[g])))
			s.consider(d, n)
			s.uncap()
		}
	}
	s.varyNodes(n, tries)
}

// mostTries bounds how often it is solved again, effort how large the tables
// of all those solutions are together.
const (
	mostTries = 12
	effort    = 1 << 18
)

// mostNodes bounds the NUMA nodes whose sets are tried one and all.
const mostNodes = 8

// varyNodes tries the sets of NUMA nodes that are closer together than those of
// the best choice, the closest first.
func (s *solver) varyNodes(n int32, tries int) {
	d, nodes := s.within, s.l.nodes
	if s.bestFar == 0 || len(nodes) > mostNodes {
		return
	}
	if s.l.doms[d].level >= s.l.doms[nodes[0]].level {
		return
	}
	for ; tries > 0; tries-- {
		set := s.closest(n)
		if set == 0 {
			return
		}
		far := s.bestFar
		for i, node := range nodes {
			if set>>i&1 == 0 {
				s.cap(node, 0)
			}
		}
		s.consider(d, n)
		s.uncap()
		if s.bestFar >= far {
			return // closer together costs more elsewhere
		}
	}
}

// closest returns the set of NUMA nodes, as bits, that are closest together of
// those that hold n, if they are closer than those of the best choice.
func (s *solver) closest(n int32) int {
	nodes := s.l.nodes
	best, set := s.bestFar, 0
	for candidate := 1; candidate < 1<<len(nodes); candidate++ {
		sum, held := int32(0), int32(0)
		for rest := candidate; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros(uint(rest))
			held += s.avail[nodes[i]]
			for more := rest & (rest - 1); more != 0; more &= more - 1 {
				sum += s.l.distance[i][bits.TrailingZeros(uint(more))]
			}
		}
		if held >= n && sum < best {
			best, set = sum, candidate
		}
	}
	return set
}

// cap lets a domain give no more than that.
func (s *solver) cap(d, most int32) { s.limit[d] = min(s.limit[d], most) }

func (s *solver) uncap() { copy(s.limit, s.avail) }
