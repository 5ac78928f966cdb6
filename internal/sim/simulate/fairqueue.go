package simulate

import "time"

// unit is the weight of a thread.
const unit = 1024

// weight returns the weight of a member of a run queue on a CPU. A group's weight is its share by the number
// of its threads there (calc_group_shares, with counts in place of load averages).
func (h *host) weight(member, c int) int64 {
	if member >= 0 {
		return unit
	}
	g := ^member
	all, here := h.groups[g].threads, h.rq(g, c).threads
	if here == 0 { // its last thread is leaving, and it does so with the weight that it had
		all, here = all+1, 1
	}
	return max(2, h.groups[g].weight*int64(here)/int64(all))
}

func (h *host) entity(member, c int) *entity {
	if member >= 0 {
		return &h.threads[member].entity
	}
	return &h.rq(^member, c).entity
}

// virtual is d in the virtual time of a weight.
func virtual(d time.Duration, weight int64) int64 { return int64(d) * unit / weight }

// average is the virtual time at which every member's lag is 0 (avg_vruntime); before EEVDF it is the
// smallest.
func (h *host) average(q *rq, c int) int64 {
	if q.len() == 0 {
		return q.floor
	}
	base := h.base(q, c)
	if !h.eevdf {
		for _, m := range q.list[1:] {
			base = min(base, h.entity(m, c).vruntime)
		}
		return base
	}
	var sum, total int64
	for _, m := range q.list {
		w := h.weight(m, c)
		sum += w * (h.entity(m, c).vruntime - base)
		total += w
	}
	for _, d := range q.delayed {
		sum += d.weight * (d.vruntime - base)
		total += d.weight
	}
	return base + sum/total
}

// len is how many members a queue has, delayed ones too (nr_queued).
func (q *rq) len() int { return len(q.list) + len(q.delayed) }

// base is some member's virtual time, against which the others' are small.
func (h *host) base(q *rq, c int) int64 {
	if len(q.list) == 0 {
		return q.delayed[0].vruntime
	}
	return h.entity(q.list[0], c).vruntime
}

// total is the weight of a queue.
func (h *host) total(q *rq, c int) (total int64) {
	for _, m := range q.list {
		total += h.weight(m, c)
	}
	for _, d := range q.delayed {
		total += d.weight
	}
	return total
}

// place puts a member into a queue. EEVDF keeps its lag, within a slice. Before EEVDF a sleeper comes up to
// half a scheduling latency early.
func (h *host) place(q *rq, member, c int) {
	e := h.entity(member, c)
	now := h.average(q, c)
	if h.eevdf {
		w := h.weight(member, c)
		most := virtual(max(2*h.slice, h.tick), w)
		lag := min(most, max(-most, e.lag))
		if total := h.total(q, c); total > 0 {
			lag += lag * w / total // its own arrival moves the average
		} else {
			lag = 0
		}
		e.vruntime = now - lag
		e.deadline = e.vruntime + virtual(h.slice, w)
	} else {
		early := -int64(h.latency) / 2
		e.vruntime = now + max(early, -e.lag-int64(h.now-e.slept))
	}
	q.list = append(q.list, member)
}

// leave takes a member out of a queue.
func (h *host) leave(q *rq, member, c int) {
	e := h.entity(member, c)
	now := h.average(q, c)
	e.lag, e.slept = now-e.vruntime, h.now
	for i, m := range q.list {
		if m == member {
			last := len(q.list) - 1
			q.list[i] = q.list[last]
			q.list = q.list[:last]
			break
		}
	}
	q.floor = max(q.floor, now)
	if len(q.list) == 0 {
		h.dropAll(q, c)
	}
}

// pickIn chooses the next member. A delayed one, if it is its turn, leaves the queue instead.
func (h *host) pickIn(q *rq, c int) int {
	for {
		m, late := h.first(q, c)
		if late < 0 {
			return m
		}
		h.drop(q, late, c)
	}
}

// first is the member whose turn it is. Before EEVDF it is the one with the smallest virtual time. With EEVDF it is the
// one with the earliest deadline among those with a positive lag; the running one, if it is among them, stays until the
// deadline that it had when it was picked (RUN_TO_PARITY, protect_slice). If it is a delayed one, late is its index
// there; else -1.
func (h *host) first(q *rq, c int) (member, late int) {
	if q.len() == 1 {
		return q.list[0], -1
	}
	average := h.average(q, c)
	member, late = q.list[0], -1 // where rounding has left no member at or below the average
	found := false
	var least int64
	for _, m := range q.list {
		e := h.entity(m, c)
		key, runs := e.vruntime, m == q.runs
		if h.eevdf {
			if runs {
				h.renew(e, m, c)
			}
			if e.vruntime > average {
				continue
			}
			if runs && e.vruntime < e.protected {
				return m, -1
			}
			key = e.deadline
		}
		// Of two equal ones the waiting one is chosen (entity_before).
		if !found || key < least || key == least && h.eevdf && member == q.runs {
			member, least, found = m, key, true
		}
	}
	for i, d := range q.delayed {
		if d.vruntime <= average && (!found || d.deadline < least) {
			late, least, found = i, d.deadline, true
		}
	}
	return member, late
}

// pick descends from the root to a thread; -1: none can run.
func (h *host) pick(c int) int {
	g := 0
	for {
		q := h.rq(g, c)
		if len(q.list) == 0 {
			return -1
		}
		m := h.pickIn(q, c)
		if m >= 0 {
			return m
		}
		g = ^m
	}
}

// over reports at a tick whether the running thread has used its slice at any level.
func (h *host) over(c int) bool {
	cur := &h.cpus[c]
	member, g, is := cur.cur, h.threads[cur.cur].in, false
	for {
		q, e := h.rq(g, c), h.entity(member, c)
		if h.eevdf {
			over := h.renew(e, member, c) || h.unprotected(e)
			is = is || over && q.len() > 1
		} else if n := len(q.list); n > 1 {
			period := max(h.latency, time.Duration(n)*h.slice)
			is = is || h.now-cur.picked >= max(h.slice, period*time.Duration(h.weight(member, c))/time.Duration(h.total(q, c)))
		}
		if g == 0 {
			return is
		}
		member, g = ^g, h.groups[g].parent
	}
}

// preempts reports whether a thread that just became runnable makes the CPU choose again. The level at which
// its path to the root meets the running one's decides.
func (h *host) preempts(t, c int) bool {
	cur := h.cpus[c].cur
	a, b := t, cur
	ga, gb := h.threads[t].in, h.threads[cur].in
	for da, db := h.depth(ga), h.depth(gb); ga != gb; {
		if da >= db {
			a, ga, da = ^ga, h.groups[ga].parent, da-1
		} else {
			b, gb, db = ^gb, h.groups[gb].parent, db-1
		}
	}
	if a == b {
		return false
	}
	q := h.rq(ga, c)
	if !h.eevdf {
		return h.entity(b, c).vruntime-h.entity(a, c).vruntime > virtual(h.granularity, h.weight(a, c))
	}
	// An arrival charges the running member, which may be over then (update_curr).
	e := h.entity(b, c)
	over := h.renew(e, b, c) || h.unprotected(e)
	m, late := h.first(q, c)
	return late < 0 && m == a || over && q.len() > 2
}

// renew gives a running member that has used its slice up a new deadline (update_deadline). It returns true if it did.
func (h *host) renew(e *entity, member, c int) bool {
	if e.vruntime < e.deadline {
		return false
	}
	e.deadline = e.vruntime + virtual(h.slice, h.weight(member, c))
	return true
}

// unprotected reports whether each look at a running member makes the CPU choose again, which came with 6.17 (update_curr).
func (h *host) unprotected(e *entity) bool { return h.looks && e.vruntime >= e.protected }

// mark makes the members on the way to a thread those that run in their queues; -1: none. One that did not run before
// is protected until its deadline (set_next_entity).
func (h *host) mark(c, t int) {
	cur := &h.cpus[c]
	before := cur.marked
	cur.marked = cur.other[:0]
	if t >= 0 {
		for m, g := t, h.threads[t].in; ; m, g = ^g, h.groups[g].parent {
			if q := h.rq(g, c); q.runs != m {
				e := h.entity(m, c)
				e.protected = e.deadline
			}
			cur.marked = append(cur.marked, mark{g, m})
			if g == 0 {
				break
			}
		}
	}
	for _, old := range before {
		h.rq(old.group, c).runs = nobody
	}
	for _, now := range cur.marked {
		h.rq(now.group, c).runs = now.member
	}
	cur.other = before[:0]
}

func (h *host) depth(g int) int {
	n := 0
	for ; g > 0; g = h.groups[g].parent {
		n++
	}
	return n
}
