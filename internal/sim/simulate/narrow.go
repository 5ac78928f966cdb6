package simulate

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// narrow bounds how many CPUs a group uses at once, as the kernel patch of the article "The container
// throttling problem" does. Other threads wait on the CPUs that the group has, as on a host that is no wider.
// With credit the group saves unused CPU time and may be wide while it has some: see credit.
type narrow struct {
	cpus   int // at most at once, without credit
	span   int // CPUs that have its threads
	credit *credit
}

// credit is the rule of the scheduler in BPF (internal/widthcap/scx/bpf/bucket.h), with its numbers: a bucket of CPU time that fills
// at the limit's rate. It opens with enter in it and closes before it is empty at the next tick. Closed, a limit with a fraction is kept
// by turns between the whole CPUs below and above it. Below 1 CPU the lower turn is a short stop.
type credit struct {
	limit  int64 // millionths of a CPU
	most   int64 // that the bucket holds, in ns of CPU time
	widest int64 // CPUs at once while it is open
	level  int64 // in the bucket
	open   bool
	up     bool  // the upper turn of a limit with a fraction
	allow  int64 // CPUs at once now
	holds  bool  // the lower turn is none at all, and the group waits
}

const (
	// million is the parts of a CPU, and the ns of a tick: so a CPU's parts are the ns that it uses in a tick.
	million = int64(time.Millisecond)
	// creditTick is how often the scheduler looks at a bucket when nothing happens.
	creditTick = time.Millisecond
	// turn is how long a lower and an upper turn take together, at the longest half of it each.
	turn = 8 * time.Millisecond
	// furthest bounds the time that counts at once, and how far a bucket is overdrawn.
	furthest = int64(time.Second)
)

// newNarrow is the bound of a cgroup; nil: it has none.
func newNarrow(c *scenario.Cgroup, ncpu int) *narrow {
	if c.Width == 0 {
		return nil
	}
	n := &narrow{cpus: c.Width}
	if c.Credit > 0 {
		n.credit = newCredit(c.Cap, c.Credit, c.Widest, ncpu)
	}
	return n
}

// newCredit is an empty bucket. widest 0 means all CPUs.
func newCredit(limit float64, most time.Duration, widest, ncpu int) *credit {
	if widest == 0 || widest > ncpu {
		widest = ncpu
	}
	c := &credit{limit: int64(math.Round(limit * float64(million))), most: most.Nanoseconds(), widest: int64(widest)}
	c.settle(0, 0)
	return c
}

// settle counts a time with so many CPUs in use, and decides how many the group may use from then on.
func (c *credit) settle(d time.Duration, running int) {
	passed := min(d.Nanoseconds(), furthest)
	c.level += passed*c.limit/million - passed*int64(running)
	part := c.limit % million / 1000
	up := part * (1000 - part) * (turn.Nanoseconds() / million)
	c.level = max(min(c.level, max(c.most, 2*up)), -furthest)

	spent := int64(running)*million - c.limit
	enter := min(4*(c.widest*million-c.limit), c.most-c.most>>2)
	switch {
	case c.open && c.level <= spent:
		c.open = false
	case !c.open && c.most > 0 && c.level >= enter && c.level > spent:
		c.open = true
	}
	switch {
	case c.level >= up:
		c.up = up != 0
	case c.level <= 0:
		c.up = false
	}
	c.allow = c.limit / million
	if c.open && c.widest > c.allow {
		c.allow = c.widest
	} else if c.up {
		c.allow++
	}
}

// width returns how many CPUs the group may have threads on now.
func (h *host) width(g int) int {
	n := h.groups[g].narrow
	if n.credit == nil {
		return n.cpus
	}
	return max(1, int(n.credit.allow)) // those that wait for a turn wait on one CPU
}

// aimCredit makes the next look at a group's bucket due.
func (h *host) aimCredit(g int) { h.queue.set(h.slots.credit+g, h.now+creditTick) }

// onCredit takes CPUs from a group, or gives it some, by its bucket.
func (h *host) onCredit(g int) {
	h.touch(g)
	n := h.groups[g].narrow
	n.credit.settle(0, h.groups[g].running)
	if wait := n.credit.allow == 0; wait != n.credit.holds {
		n.credit.holds = wait
		h.holdGroup(g, wait)
	}
	if n.span > h.width(g) {
		first := h.rng.IntN(h.ncpu)
		for i := range h.ncpu {
			h.shrinkGroup(g, (first+i)%h.ncpu)
		}
	} else {
		h.widen(g)
	}
	h.aimCredit(g)
}

// holdGroup makes a group wait for its turn on all CPUs, or lets it run again.
func (h *host) holdGroup(g int, wait bool) {
	for c := range h.ncpu {
		q := h.rq(g, c)
		switch {
		case wait && q.queued:
			h.charge(c)
			cur := h.cpus[c].cur
			if h.reachable(g, c) {
				h.holdAll(g, c, true)
			}
			h.unlink(g, c, (*host).leave)
			if cur >= 0 && h.threads[cur].held {
				h.schedule(c, h.threads[cur].group)
			}
		case !wait && !q.queued && len(q.list) > 0:
			h.charge(c)
			h.climb(g, c)
			if h.reachable(g, c) {
				h.holdAll(g, c, false)
			}
			if h.cpus[c].cur < 0 {
				h.schedule(c, 0)
			}
		}
	}
}

// widen gives waiting threads of a group idle CPUs, as many as it may have now.
func (h *host) widen(g int) {
	for from := range h.ncpu {
		for h.rq(g, from).threads > 0 && h.rq(0, from).threads > 1 {
			to := firstCommon(h.idle, h.idle, from)
			if to < 0 {
				return
			}
			t := h.waiting(g, from, to)
			if t < 0 || !h.move(t, to) {
				break
			}
			h.schedule(to, h.threads[t].group)
		}
	}
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

// shrink takes groups off a CPU at a tick that are wider than they may be.
func (h *host) shrink(c int) {
	for g := range h.groups {
		if h.groups[g].narrow != nil {
			h.shrinkGroup(g, c)
		}
	}
}

// shrinkGroup takes a group off a CPU, as long as it is wider than it may be.
func (h *host) shrinkGroup(g, c int) {
	n := h.groups[g].narrow
	for n.span > h.width(g) && h.rq(g, c).threads > 0 {
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
