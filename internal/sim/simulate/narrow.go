package simulate

// narrow bounds how many CPUs a group uses at once, as the kernel patch of the article "The container
// throttling problem" does. Other threads wait on the CPUs that the group has, as on a host that is no wider.
// With credit the group saves unused CPU time, and while it has some its width has no bound.
type narrow struct {
	cpus  int     // at most at once
	span  int     // CPUs that have its threads
	limit float64 // CPUs on average, which fill the credit
	most  float64 // CPU time that it can save, in ns; 0: no credit
	saved float64
}

// spend brings the credit up to date, for a time with so many CPUs in use.
func (n *narrow) spend(d float64, running int) {
	n.saved = min(n.most, n.saved+d*(n.limit-float64(running)))
}

// width returns how many CPUs the group may use now.
func (h *host) width(g int) int {
	n := h.groups[g].narrow
	if n.most > 0 {
		h.touch(g)
		if n.saved > 0 {
			return h.ncpu
		}
	}
	return n.cpus
}

// fits reports whether a thread of a group may come to a CPU, from another one or from a sleep (-1).
func (h *host) fits(g, from, to int) bool {
	for ; g > 0; g = h.groups[g].parent {
		n := h.groups[g].narrow
		if n == nil || h.rq(g, to).threads > 0 || n.span < h.width(g) || from >= 0 && h.rq(g, from).threads == 1 && n.span == h.width(g) {
			continue
		}
		return false
	}
	return true
}

// isNarrow reports whether a group or an ancestor has a bound.
func (h *host) isNarrow(g int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if h.groups[g].narrow != nil {
			return true
		}
	}
	return false
}

// chooseNarrow is choose for a thread of a bounded group. It prefers an idle CPU that the thread may use, the
// last one first, else the CPU with the fewest threads.
func (h *host) chooseNarrow(t int) int {
	th := &h.threads[t]
	best := -1
	for i := range h.ncpu {
		c := (th.cpu + i) % h.ncpu
		if !th.allowed.has(c) || !h.fits(th.group, -1, c) {
			continue
		}
		if h.idle.has(c) {
			return c
		}
		if best < 0 || h.cpus[c].threads < h.cpus[best].threads {
			best = c
		}
	}
	if best < 0 {
		return th.cpu // bound to other CPUs
	}
	return best
}

// shrink takes a group off a CPU at a tick, if its credit is used up and it is wider than it may be.
func (h *host) shrink(c int) {
	for g := range h.groups {
		n := h.groups[g].narrow
		if n == nil || h.rq(g, c).threads == 0 || n.span <= h.width(g) {
			continue
		}
		for n.span > h.width(g) {
			t, to := h.outcast(g, c, g)
			if t < 0 {
				break
			}
			running := h.cpus[c].cur == t
			h.move(t, to)
			if running {
				h.schedule(c, h.threads[t].group)
			}
			if h.cpus[to].cur < 0 {
				h.schedule(to, h.threads[t].group)
			}
		}
	}
}

// outcast finds a thread below a group on a CPU, and another CPU that the bounded group already has, for it;
// -1: there is none.
func (h *host) outcast(below, c, bounded int) (t, to int) {
	for _, m := range h.rq(below, c).list {
		if m < 0 {
			if t, to := h.outcast(^m, c, bounded); t >= 0 {
				return t, to
			}
			continue
		}
		best := -1
		for other := range h.ncpu {
			if other != c && h.rq(bounded, other).threads > 0 && h.threads[m].allowed.has(other) &&
				(best < 0 || h.cpus[other].threads < h.cpus[best].threads) {
				best = other
			}
		}
		if best >= 0 {
			return m, best
		}
	}
	return -1, -1
}
