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
	all := max(1, h.groups[g].threads)
	return max(2, h.groups[g].weight*int64(h.rq(g, c).threads)/int64(all))
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
	if len(q.list) == 0 {
		return q.floor
	}
	base := h.entity(q.list[0], c).vruntime
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
	return base + sum/total
}

// total is the weight of a queue.
func (h *host) total(q *rq, c int) (total int64) {
	for _, m := range q.list {
		total += h.weight(m, c)
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
		most := virtual(2*h.slice, w)
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
}

// pickIn chooses the next member: with EEVDF the earliest deadline among members with a positive lag, before
// it the smallest virtual time.
func (h *host) pickIn(q *rq, c int) int {
	if len(q.list) == 1 {
		return q.list[0]
	}
	average := h.average(q, c)
	best, found := 0, false
	var least int64
	for _, m := range q.list {
		e := h.entity(m, c)
		key := e.vruntime
		if h.eevdf {
			if e.vruntime > average {
				continue
			}
			key = e.deadline
		}
		if !found || key < least {
			best, least, found = m, key, true
		}
	}
	if !found {
		return q.list[0] // rounding has left no member at or below the average
	}
	return best
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
		q, e, w := h.rq(g, c), h.entity(member, c), h.weight(member, c)
		if h.eevdf {
			if e.vruntime >= e.deadline {
				e.deadline = e.vruntime + virtual(h.slice, w)
				is = is || len(q.list) > 1
			}
		} else if n := len(q.list); n > 1 {
			period := max(h.latency, time.Duration(n)*h.slice)
			is = is || h.now-cur.picked >= max(h.slice, period*time.Duration(w)/time.Duration(h.total(q, c)))
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
	e := h.entity(b, c)
	if e.vruntime >= e.deadline {
		// Its slice is over, which an arrival makes visible (update_curr, update_deadline).
		e.deadline = e.vruntime + virtual(h.slice, h.weight(b, c))
		return true
	}
	// RUN_TO_PARITY: a running member with a positive lag stays until its lag is 0.
	if e.vruntime <= h.average(q, c) {
		return false
	}
	return h.pickIn(q, c) == a
}

func (h *host) depth(g int) int {
	n := 0
	for ; g > 0; g = h.groups[g].parent {
		n++
	}
	return n
}
