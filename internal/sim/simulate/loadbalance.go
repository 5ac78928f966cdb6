package simulate

import "slices"

// balanceTicks is how often a busy CPU looks for a busier one.
const balanceTicks = 16

// choose returns the CPU for a thread that becomes runnable: its last one if idle, else an idle one, else its
// last one (select_idle_sibling, over all CPUs). A new thread comes to the CPU with the fewest threads. Held
// threads count too; otherwise all would start on the first throttled CPU.
func (h *host) choose(t int) int {
	th := &h.threads[t]
	if h.stays(t, th.group, th.cpu) {
		return th.cpu
	}
	if th.fresh {
		th.fresh = false
		th.cpu = h.rng.IntN(h.ncpu)
		if h.isNarrow(th.group) {
			return h.chooseNarrow(t)
		}
		from, best := th.cpu, -1
		for i := range h.ncpu {
			c := (from + i) % h.ncpu
			if th.allowed.has(c) && (best < 0 || h.emptier(c, best)) {
				best = c
			}
		}
		return best
	}
	if h.bounded && h.isNarrow(th.group) {
		return h.chooseNarrow(t)
	}
	if !h.idle.has(th.cpu) {
		if h.speeds != nil {
			if c := h.chooseNear(t); c >= 0 {
				return c
			}
			return th.cpu
		}
		if c := firstCommon(h.idle, th.allowed, th.cpu); c >= 0 {
			return c
		}
	}
	return th.cpu
}

// placeSleeper puts a thread that begins with a sleep on any CPU, on which it then wakes up.
func (h *host) placeSleeper(t *thread) {
	t.fresh = false
	t.cpu = firstCommon(t.allowed, t.allowed, h.rng.IntN(h.ncpu))
}

// emptier reports whether a CPU has fewer threads than another one, or as many on a core that has fewer.
func (h *host) emptier(a, b int) bool {
	if n, m := h.cpus[a].threads, h.cpus[b].threads; n != m || h.speeds == nil {
		return n < m
	}
	per := h.speeds.perCore
	return h.speeds.busy[a/per] < h.speeds.busy[b/per]
}

// steal moves a waiting thread from the busiest CPU to c, if that CPU has at least "more" threads more. It
// returns the thread or -1.
func (h *host) steal(c, more int) int {
	if h.crowded == 0 {
		return -1
	}
	here, busiest := h.rq(0, c).threads, -1
	for other := range h.ncpu {
		n := h.rq(0, other).threads
		if other != c && n >= max(2, here+more) && (busiest < 0 || n > h.rq(0, busiest).threads) {
			busiest = other
		}
	}
	if busiest < 0 {
		return -1
	}
	t := h.waiting(0, busiest, c)
	if t < 0 || !h.move(t, c) {
		return -1
	}
	return t
}

// move takes a thread to another CPU; false: a quota holds it there. It charges the running threads of both
// CPUs first. Otherwise the thread's lag would come from old times (dequeue_entity and enqueue_entity call
// update_curr, Linux 4.18 to 6.18).
func (h *host) move(t, c int) bool {
	h.charge(h.threads[t].cpu)
	h.charge(c)
	h.dequeue(t)
	h.threads[t].cpu = c
	h.enqueue(t)
	return !h.threads[t].held
}

// charge charges a CPU between its ticks, unless it was charged just now. If that uses a quota up, the CPU
// picks again after the event (account_cfs_rq_runtime calls resched_curr, Linux 4.18 to 6.18).
func (h *host) charge(c int) {
	if h.cpus[c].last < h.now && h.update(c, true) && !slices.Contains(h.toRepick, c) {
		h.toRepick = append(h.toRepick, c)
	}
}

// repick makes the CPUs pick again whose quota charge used up.
func (h *host) repick() {
	for len(h.toRepick) > 0 {
		last := len(h.toRepick) - 1
		c := h.toRepick[last]
		h.toRepick = h.toRepick[:last]
		if cur := h.cpus[c].cur; cur >= 0 {
			h.schedule(c, h.threads[cur].group)
		}
	}
}

// waiting finds a thread below g on a CPU that does not run and may run on another; -1: none.
func (h *host) waiting(g, from, to int) int {
	for _, m := range h.rq(g, from).list {
		if m < 0 {
			if t := h.waiting(^m, from, to); t >= 0 {
				return t
			}
			continue
		}
		if m != h.cpus[from].cur && h.threads[m].allowed.has(to) && !h.blocked(h.threads[m].group, to) &&
			(!h.bounded || h.fits(h.threads[m].group, from, to)) {
			return m
		}
	}
	return -1
}

// blocked reports whether a quota holds a group on a CPU (throttled_lb_pair).
func (h *host) blocked(g, c int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if bw := h.groups[g].bw; bw != nil && bw.Throttled(c) {
			return true
		}
	}
	return false
}

// spread is the load balancing at a tick. A waiting thread goes to an idle CPU. Every balanceTicks a CPU
// takes a thread from a much busier one.
func (h *host) spread(c int) {
	if h.crowded == 0 {
		return
	}
	if h.rq(0, c).threads >= 2 {
		if idle := firstCommon(h.idle, h.idle, c); idle >= 0 {
			if t := h.waiting(0, c, idle); t >= 0 {
				h.move(t, idle)
				h.schedule(idle, h.threads[t].group)
			}
		}
	}
	cur := &h.cpus[c]
	if cur.balance--; cur.balance > 0 {
		return
	}
	cur.balance = balanceTicks
	if cur.cur >= 0 {
		h.steal(c, 2)
	}
}
