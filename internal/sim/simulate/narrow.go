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

// credit is the rule of the sched_ext scheduler: a bucket of CPU time that fills at the limit's rate. It opens with
// opening in it and closes when it is empty. Closed, a limit with a fraction is kept by turns between the whole
// CPUs below and above it. Below 1 CPU the lower turn is a short stop.
type credit struct {
	limit  float64 // CPUs on average, which fill the bucket
	most   float64 // that it holds, in ns of CPU time
	widest int     // CPUs at once while it is open
	saved  float64
	open   bool
	low    bool // the lower turn of a limit with a fraction
	holds  bool // the lower turn is none at all, and the group waits
}

// turn is how long a lower and an upper turn take together, and how much CPU time opens a bucket.
const turn = 8 * time.Millisecond

// newNarrow is the bound of a cgroup; nil: it has none.
func newNarrow(c *scenario.Cgroup, ncpu int) *narrow {
	if c.Width == 0 {
		return nil
	}
	n := &narrow{cpus: c.Width}
	if c.Credit > 0 {
		n.credit = &credit{limit: c.Cap, most: float64(c.Credit), widest: ncpu}
		if c.Widest > 0 {
			n.credit.widest = min(c.Widest, ncpu)
		}
	}
	return n
}

// opening is the CPU time that opens a bucket. A small bucket opens when it is half full.
func (c *credit) opening() float64 { return min(float64(turn), c.most/2) }

// debt is the CPU time that ends an upper turn: with it the two turns take turn together.
func (c *credit) debt() float64 {
	part := c.limit - math.Floor(c.limit)
	return float64(turn) * part * (1 - part)
}

// spend brings the credit up to date, for a time with so many CPUs in use.
func (c *credit) spend(d float64, running int) {
	c.saved = min(c.most, c.saved+d*(c.limit-float64(running)))
}

// settle opens or closes the bucket and changes turns.
func (c *credit) settle() {
	switch {
	case c.open && c.saved <= 0:
		c.open, c.low = false, false
	case !c.open && c.saved >= c.opening():
		c.open = true
	}
	switch {
	case c.open || c.saved >= 0:
		c.low = false
	case c.saved <= -c.debt() && c.limit != math.Trunc(c.limit):
		c.low = true
	}
}

// width is how many CPUs the group may use; 0: none, for a turn.
func (c *credit) width() int {
	switch {
	case c.open:
		return c.widest
	case c.low:
		return int(c.limit)
	}
	return int(math.Ceil(c.limit))
}

// next is how long the bucket stays as it is with so many CPUs in use; false: for good.
func (c *credit) next(running int) (time.Duration, bool) {
	rate := c.limit - float64(running)
	var to float64
	switch {
	case rate < 0 && c.open:
		to = 0
	case rate < 0 && !c.low && c.limit != math.Trunc(c.limit):
		to = -c.debt()
	case rate > 0 && c.low:
		to = 0
	case rate > 0 && !c.open:
		to = c.opening()
	default:
		return 0, false
	}
	return time.Duration(math.Ceil(max(0, (to-c.saved)/rate))) + 1, true
}

// width returns how many CPUs the group may have threads on now.
func (h *host) width(g int) int {
	n := h.groups[g].narrow
	if n.credit == nil {
		return n.cpus
	}
	return max(1, n.credit.width()) // those that wait for a turn wait on one CPU
}

// aimCredit makes the next change of a group's bucket due.
func (h *host) aimCredit(g int) {
	c := h.groups[g].narrow.credit
	if after, ok := c.next(h.groups[g].running); ok {
		h.queue.set(h.slots.credit+g, h.now+after)
	} else {
		h.queue.clear(h.slots.credit + g)
	}
}

// onCredit changes how wide a group may be when its bucket opens, closes or changes turns.
func (h *host) onCredit(g int) {
	h.touch(g)
	n := h.groups[g].narrow
	before := n.credit.width()
	n.credit.settle()
	now := n.credit.width()
	if wait := now == 0; wait != n.credit.holds {
		n.credit.holds = wait
		h.holdGroup(g, wait)
	}
	switch {
	case now < before:
		first := h.rng.IntN(h.ncpu)
		for i := range h.ncpu {
			h.shrinkGroup(g, (first+i)%h.ncpu)
		}
	case now > before:
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
