package placement

// Who a slot belongs to, where it is no tenant's.
const (
	unowned int32 = -1 // free: the shared pool's
	away    int32 = -2 // not ours to give: isolated, reserved or unavailable
)

// A wish is what the solver is asked for.
type wish struct {
	n int
	// me is the tenant whose CPUs they will be; unowned for a new container.
	me int32
	// With keep, me has CPUs that stay and n more are wanted; without, all of
	// its CPUs count as free, and having had them before is a merit.
	keep bool
	// within: only from what me has.
	within bool
	full   bool // whole cores only
	idle   bool // one thread per core, of cores that are wholly free
	kind   int8 // 0: any; 1: performance cores only; 2: efficiency cores only
	// efficient: efficiency cores are tried first, not performance cores.
	efficient bool
}

// coreSort is a sort of cores: those of one sort in one domain cost the same.
type coreSort struct {
	key    uint64 // what they have in common
	give   int32  // CPUs that one of them can give
	cores  int32  // how many there are
	wanted int32  // how many CPUs they are to give
	threads, free, mine,
	old uint8
	taken bool // another tenant, or the host, has a part
	moves bool // CPUs not had before count
	// What one costs, taken wholly and in part, apart from the moves.
	whole, part cost
}

// solver finds the cheapest way to take CPUs. Its memory is taken once.
type solver struct {
	l     *layout
	f     fields
	owner []int32 // slot -> tenant, or unowned, away
	idle  []bool  // slot -> left idle by its owner

	avail  []int32    // domain -> CPUs that can be taken
	free   []int32    // domain -> unowned CPUs, me included without keep
	limit  []int32    // domain -> the most that may be taken
	mine   []int32    // domain -> CPUs that stay mine
	sorts  []coreSort // of all leaves; leaf d has sorts[from[d]:to[d]]
	sortOf []int32    // core -> index in sorts; -1: it gives nothing
	from   []int32
	to     []int32
	tabs   [][]cost // domain -> least cost of taking j CPUs
	share  []uint16 // see domain.share
	split  []uint16 // the same for the sorts of one leaf
	take   []int32  // domain -> CPUs taken, of the choice looked at
	pick   []int32  // slots chosen
	w      wish

	best           cost    // the least so far
	lost, bestLost []int32 // by how much the room shrinks, per level: of the choice looked at, of the best
	far, bestFar   int32   // distances
	chosen         []int32 // its slots
	kept           []int32 // those of the best kind of cores
	within         int32   // the domain that was solved for it
	floats         []int32 // slots gathered for a floating tenant
}

func newSolver(l *layout, o Order) *solver {
	n := len(l.doms)
	s := &solver{l: l, f: newFields(l, o), owner: make([]int32, len(l.ids)), idle: make([]bool, len(l.ids)),
		avail: make([]int32, n), free: make([]int32, n), limit: make([]int32, n), mine: make([]int32, n),
		sorts: make([]coreSort, len(l.kinds)), sortOf: make([]int32, len(l.kinds)), from: make([]int32, n), to: make([]int32, n),
		tabs: make([][]cost, n), take: make([]int32, n), pick: make([]int32, 0, len(l.ids)), chosen: make([]int32, 0, len(l.ids))}
	s.lost, s.bestLost = make([]int32, len(l.levels)), make([]int32, len(l.levels))
	for i := range l.doms {
		s.tabs[i] = make([]cost, l.doms[i].cpus+1)
	}
	last := l.doms[len(l.doms)-1]
	s.share = make([]uint16, last.share+int(last.count)*(last.cpus+1))
	for slot := range s.owner {
		s.owner[slot] = unowned
	}
	return s
}

// look takes stock of what can be taken, core by core.
func (s *solver) look(w wish) {
	s.w = w
	l := s.l
	clear(s.avail)
	clear(s.free)
	clear(s.mine)
	next := int32(0)
	leaf := int32(-1)
	for core := range l.kinds {
		if of := l.leafOf[core]; of != leaf {
			leaf = of
			s.from[leaf], s.to[leaf] = next, next
		}
		var c coreSort
		s.sortOf[core] = -1
		var own uint8
		for slot := l.first[core]; slot < l.first[core+1]; slot++ {
			switch owner := s.owner[slot]; {
			case owner == unowned:
				c.free++
				c.threads++
			case owner == w.me && w.me >= 0:
				c.threads++
				if w.keep {
					c.mine++
				} else {
					c.free++
					if !s.idle[slot] {
						own++
					}
				}
			default:
				c.threads++
				c.taken = true
			}
		}
		s.free[leaf] += int32(c.free)
		s.mine[leaf] += int32(c.mine)
		if c.free == 0 || w.kind != 0 && w.kind != kindNumber(l.kinds[core]) {
			continue
		}
		c.give = int32(c.free)
		if w.within {
			c.give = int32(own)
		}
		switch {
		case (w.full || w.idle) && !w.within && c.free != c.threads:
			continue
		case w.full && c.give != int32(c.threads):
			continue
		case w.idle:
			c.give = min(c.give, 1)
		}
		if c.give == 0 {
			continue
		}
		if !w.within {
			c.old = own
		}
		s.avail[leaf] += c.give
		c.key = uint64(c.threads) | uint64(c.free)<<8 | uint64(c.give)<<16 | uint64(c.mine)<<32
		if c.taken {
			c.key |= 1 << 24
		}
		if c.old > 0 {
			// Which of a core's threads are taken matters: a sort of its own.
			c.key |= uint64(core+1) << 40
		}
		next = s.file(leaf, core, &c, next)
	}
	for i := len(l.doms) - 1; i > 0; i-- {
		p := l.doms[i].parent
		s.avail[p] += s.avail[i]
		s.free[p] += s.free[i]
		s.mine[p] += s.mine[i]
	}
	copy(s.limit, s.avail)
}

// file counts a core among those of its sort.
func (s *solver) file(leaf int32, core int, c *coreSort, next int32) int32 {
	for i := s.from[leaf]; i < next; i++ {
		if s.sorts[i].key == c.key {
			s.sorts[i].cores++
			s.sortOf[core] = i
			return next
		}
	}
	c.cores = 1
	s.price(c)
	s.sorts[next] = *c
	s.sortOf[core] = next
	s.to[leaf] = next + 1
	return next + 1
}

// price sets what one core of a sort costs, taken wholly and in part.
func (s *solver) price(c *coreSort) {
	for j, into := range [2]*cost{&c.part, &c.whole} {
		all := j == 1 || s.w.idle // an idle sibling goes with its core
		var split, shared, stranded int64
		if c.taken || c.give < int32(c.free) && !s.w.idle || !all {
			split = 1
		}
		if c.mine > 0 {
			split--
		} else if c.taken {
			shared = 1
		}
		if !all || c.give < int32(c.free) && !s.w.idle {
			stranded = 1
		}
		if c.taken || c.mine > 0 {
			stranded-- // it is partly taken and partly free already
		}
		for i := range into {
			into[i] = s.f.split[i]*split + s.f.shared[i]*shared + s.f.stranded[i]*stranded
		}
	}
	c.moves = s.w.me >= 0 && !s.w.keep && !s.w.within
}

// costOf is the least cost of taking m CPUs from the cores of one sort: as many
// cores as can be wholly, and the rest from one more.
func (s *solver) costOf(c *coreSort, m int32) cost {
	if m == 0 {
		return cost{}
	}
	var out cost
	if c.give == 1 {
		out = c.whole.times(int(m))
	} else {
		whole := m / c.give
		out = c.whole.times(int(whole))
		if m != whole*c.give {
			if s.w.full {
				return impossible
			}
			out = out.plus(&c.part)
		}
	}
	if c.moves {
		new := s.f.changes.times(max(0, int(m)-int(c.old)))
		out = out.plus(&new)
	}
	return out
}

// solve fills a domain's table: the least cost of taking 0 to n CPUs from it.
// What the domains within cost adds up, so the best split over them is found
// child by child: of all ways to take j from the children so far, only the
// cheapest is kept. Of equal ones the first child gives most. It returns the
// most that can be taken. With last, only n itself is found.
func (s *solver) solve(d, n int32, last bool) int32 {
	dom := &s.l.doms[d]
	table := s.tabs[d]
	most := int32(0)
	table[0] = cost{}
	if dom.count == 0 {
		for i := s.from[d]; i < s.to[d]; i++ {
			c := &s.sorts[i]
			cap := c.give * c.cores
			before := most
			most = min(most+cap, n)
			low := int32(1)
			if last && i == s.to[d]-1 {
				low = most
			}
			s.joinSort(table, before, c, cap, low, most)
		}
	} else {
		share := s.share[dom.share:]
		for i := range dom.count {
			child := dom.child + i
			got := s.solve(child, min(n, s.limit[child]), false)
			before := most
			most = min(most+got, n)
			low := int32(1)
			if last && i == dom.count-1 {
				low = most
			}
			join(table, before, s.tabs[child], got, low, most, share[int(i)*(dom.cpus+1):])
		}
	}
	most = min(most, s.limit[d])
	if dom.level >= 0 {
		low := int32(1)
		if last {
			low = most
		}
		s.addSpan(d, table, max(low, 1), most)
	}
	return most
}

// addSpan adds what touching a domain costs.
func (s *solver) addSpan(d int32, table []cost, low, most int32) {
	level := s.l.doms[d].level
	unit := s.f.left[level]
	base := unit.times(int(s.free[d]))
	if s.mine[d] == 0 {
		base = base.plus(&s.f.span[level])
	}
	for j := low; j <= most; j++ {
		less := unit.times(int(j))
		table[j] = cost{table[j][0] + base[0] - less[0], table[j][1] + base[1] - less[1]}
	}
}

// joinSort lets one more sort of cores give CPUs.
func (s *solver) joinSort(table []cost, before int32, c *coreSort, cap, low, most int32) {
	for j := most; j >= low; j-- {
		best := impossible
		for give := max(0, j-before); give <= min(j, cap); give++ {
			if !table[j-give].can() {
				continue
			}
			sum := s.costOf(c, give)
			sum = sum.plus(&table[j-give])
			if sum.less(&best) {
				best = sum
			}
		}
		table[j] = best
	}
}

// join lets one more child give CPUs. Going down, what it reads is still that
// of the children before.
func join(table []cost, before int32, child []cost, got, low, most int32, share []uint16) {
	share[0] = 0
	for j := most; j >= low; j-- {
		from, to := max(0, j-before), min(j, got)
		gives := from
		high, rest := never, int64(0)
		mine, theirs := table[j-to:j-from+1], child[from:to+1]
		for i := range theirs {
			a, b := &mine[len(mine)-1-i], &theirs[i]
			sum := a[0] + b[0]
			if sum > high {
				continue
			}
			if second := a[1] + b[1]; sum < high || second < rest {
				high, rest, gives = sum, second, from+int32(i)
			}
		}
		if high >= never/2 {
			high, rest = never, 0
		}
		table[j], share[j] = cost{high, rest}, uint16(gives)
	}
}

// collect appends the slots of the best way to take n of a domain that was
// solved, and counts them in take.
func (s *solver) collect(d, n int32) {
	if n == 0 {
		return
	}
	dom := &s.l.doms[d]
	s.take[d] = n
	if dom.count == 0 {
		s.collectLeaf(d, n)
		return
	}
	share := s.share[dom.share:]
	for i := dom.count - 1; i >= 0; i-- {
		give := int32(share[int(i)*(dom.cpus+1)+int(n)])
		s.collect(dom.child+i, give)
		n -= give
	}
}

// collectLeaf finds again which sorts gave how many, and takes the lowest CPUs.
func (s *solver) collectLeaf(d, n int32) {
	from, to := s.from[d], s.to[d]
	row := int(n + 1)
	if size := int(to-from) * row; len(s.split) < size {
		s.split = make([]uint16, size)
	}
	table := s.tabs[d]
	most := int32(0)
	table[0] = cost{}
	for i := from; i < to; i++ {
		c := &s.sorts[i]
		share := s.split[int(i-from)*row:]
		share[0] = 0
		before := most
		cap := c.give * c.cores
		most = min(most+cap, n)
		for j := most; j >= 1; j-- {
			best, gives := impossible, max(0, j-before)
			for give := max(0, j-before); give <= min(j, cap); give++ {
				sum := s.costOf(c, give)
				if sum = sum.plus(&table[j-give]); sum.less(&best) && sum.can() {
					best, gives = sum, give
				}
			}
			table[j], share[j] = best, uint16(gives)
		}
	}
	for i := to - 1; i >= from; i-- {
		s.sorts[i].wanted = int32(s.split[int(i-from)*row+int(n)])
		n -= s.sorts[i].wanted
	}
	for core := s.l.doms[d].lo; core < s.l.doms[d].hi; core++ {
		at := s.sortOf[core]
		if at < 0 || s.sorts[at].wanted == 0 {
			continue
		}
		c := &s.sorts[at]
		take := min(c.give, c.wanted)
		c.wanted -= take
		s.takeOf(core, take)
	}
}

// takeOf picks CPUs of a core: those that the container had first, then the
// lowest.
func (s *solver) takeOf(core, take int32) {
	for _, had := range [2]bool{true, false} {
		for slot := s.l.first[core]; slot < s.l.first[core+1] && take > 0; slot++ {
			own := s.w.me >= 0 && s.owner[slot] == s.w.me && !s.idle[slot]
			mineAnyway := s.w.me >= 0 && s.owner[slot] == s.w.me
			able := s.owner[slot] == unowned || mineAnyway && !s.w.keep
			if own == had && able && !(s.w.within && !own) && !(s.w.keep && own) {
				s.pick = append(s.pick, slot)
				take--
			}
		}
	}
}
