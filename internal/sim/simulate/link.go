package simulate

import "github.com/unthrottle/unthrottle/bandwidth"

// count adds runnable threads to a group on a CPU, and to its ancestors as far as they are linked.
func (h *host) count(g, c, n int) {
	for n != 0 {
		q := h.rq(g, c)
		if g == 0 {
			before := q.threads
			q.threads += n
			h.crowd(before, q.threads)
			return
		}
		before := q.threads
		q.threads += n
		h.groups[g].threads += n
		if bound := h.groups[g].narrow; bound != nil {
			if before == 0 {
				bound.span++
			} else if q.threads == 0 {
				bound.span--
			}
		}
		if !q.queued {
			return
		}
		g = h.groups[g].parent
	}
}

func (h *host) crowd(before, after int) {
	if before < 2 && after >= 2 {
		h.crowded++
	} else if before >= 2 && after < 2 {
		h.crowded--
	}
}

// reachable reports whether no quota holds a group's threads back on a CPU.
func (h *host) reachable(g, c int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if !h.rq(g, c).queued {
			return false
		}
	}
	return true
}

// climb links a group that got a runnable thread into its parent, and so on up, until a quota stops it.
func (h *host) climb(g, c int) {
	for g > 0 {
		q := h.rq(g, c)
		if q.queued {
			return
		}
		if bound := h.groups[g].narrow; bound != nil && bound.credit != nil && bound.credit.holds {
			return
		}
		if bw := h.groups[g].bw; bw != nil {
			stop := bw.Enqueue(h.now, c)
			h.timers(g)
			if stop {
				h.parkedBelow(h.groups[g].parent, c)
				return
			}
		}
		p := h.groups[g].parent
		up := h.rq(p, c)
		first := len(up.list) == 0
		q.queued = true
		h.joinAwake(^g, p, c)
		h.count(p, c, q.threads)
		if !first {
			return
		}
		g = p
	}
}

// parkedBelow starts the throttle clocks of g and its throttled ancestors when a thread below them is parked.
// From 6.18 on the thread goes through all of them first (record_throttle_clock).
func (h *host) parkedBelow(g, c int) {
	if !h.scenario.Host.Rules.Has(bandwidth.Since6_18) {
		return
	}
	for ; g > 0; g = h.groups[g].parent {
		if bw := h.groups[g].bw; bw != nil && bw.Throttled(c) {
			bw.Enqueue(h.now, c)
		}
	}
}

// unlink takes a group that has nothing to run, or may not run, out of its parent, and each parent that is
// then empty.
func (h *host) unlink(g, c int, leave func(h *host, q *rq, member, c int)) {
	for g > 0 && h.rq(g, c).queued {
		q := h.rq(g, c)
		p := h.groups[g].parent
		leave(h, h.rq(p, c), ^g, c)
		q.queued = false
		h.count(p, c, -q.threads)
		if len(h.rq(p, c).list) > 0 {
			return
		}
		h.emptied(p, c)
		g = p
	}
}

func (h *host) emptied(g, c int) {
	if bw := h.groups[g].bw; bw != nil {
		bw.Dequeue(h.now, c)
		h.timers(g)
	}
}

// enqueue makes a thread runnable on its CPU.
func (h *host) enqueue(t int) {
	th := &h.threads[t]
	c := th.cpu
	q := h.rq(th.in, c)
	first := len(q.list) == 0
	th.queued = true
	h.cpus[c].threads++
	h.joinAwake(t, th.in, c)
	h.count(th.in, c, 1)
	if first {
		h.climb(th.in, c)
	}
	if !h.reachable(th.in, c) {
		h.hold(t, true)
		th.late = h.now
	}
}

// dequeue takes a thread out of its CPU's run queues.
func (h *host) dequeue(t int) { h.takeOut(t, (*host).leave) }

// takeOut does so; leave takes it out of its queue, and a group whose last thread it is out of the one above.
func (h *host) takeOut(t int, leave func(h *host, q *rq, member, c int)) {
	th := &h.threads[t]
	c := th.cpu
	q := h.rq(th.in, c)
	leave(h, q, t, c)
	th.queued, th.late = false, 0
	h.cpus[c].threads--
	h.count(th.in, c, -1)
	if th.held {
		h.hold(t, false)
	}
	if len(q.list) == 0 {
		h.emptied(th.in, c)
		h.unlink(th.in, c, leave)
	}
	th.in = th.group
}
