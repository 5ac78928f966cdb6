package simulate

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// comeBackIn places again what a quota held back in a group's queue on a CPU, and in the queues below. From
// 6.18 on the kernel parks threads one by one, in the order in which it picks them, and each keeps its lag.
//
// Of sibling groups the last one to leave has no lag, because it is alone. The first one to come back gets
// none, because the queue is empty (place_entity). They come back in a fixed order (tg_unthrottle_up along
// walk_tg_tree_from, which begins with the newest child). So the newest group loses its lag each time, and an
// older one does not.
//
// Threads of one group come back in the reverse of the order in which they left. Each then finds the threads
// beside which it had its lag, and loses nothing. A thread that wakes while its group is throttled is parked
// last and therefore alone, so it loses its lag, and so does its group. It comes back first, level with the
// last picked thread, behind all threads with a positive lag.
func (h *host) comeBackIn(g, c int) {
	if !h.scenario.Host.Rules.Has(bandwidth.Since6_18) {
		return
	}
	q := h.rq(g, c)
	alone := true // threads: no group beside them
	for _, m := range q.list {
		if isGroup(m) {
			alone = false
			below, n := h.rq(^m, c), h.lateBelow(^m, c)
			below.parking, below.late = below.threads-n, n > 0
			h.comeBackIn(^m, c)
		}
	}
	late := h.takeLate(q)
	if len(late) == 0 && alone && len(q.delayed) == 0 {
		for _, t := range q.list {
			e := h.entity(t, c)
			e.deadline = e.vruntime + virtual(h.slice, unit)
		}
		return
	}
	from := len(h.parked)
	for len(q.list) > 0 {
		m := h.pickIn(q, c)
		if isGroup(m) {
			if below := h.rq(^m, c); below.parking > 1 {
				below.parking--
				continue
			}
		}
		h.leave(q, m, c)
		if isGroup(m) && h.rq(^m, c).late {
			h.entity(m, c).lag = 0
		}
		h.parked = append(h.parked, m)
	}
	h.dropAll(q, c)
	h.parked = append(h.parked, late...)
	back := h.parked[from:]
	slices.Reverse(back)
	slices.SortStableFunc(back, func(a, b int) int {
		if isGroup(a) || isGroup(b) {
			return a - b
		}
		return 0
	})
	for _, m := range back {
		h.place(q, m, c)
	}
	h.parked = h.parked[:from]
}

// takeLate takes the threads that woke up late out of a queue, in the order of their wake-ups. The result is
// valid until the next call.
func (h *host) takeLate(q *rq) []int {
	h.late = h.late[:0]
	q.list = slices.DeleteFunc(q.list, func(m int) bool {
		if isGroup(m) || h.threads[m].late == 0 {
			return false
		}
		h.late = append(h.late, m)
		return true
	})
	slices.SortFunc(h.late, func(a, b int) int { return cmp.Compare(h.threads[a].late, h.threads[b].late) })
	for _, t := range h.late {
		h.threads[t].late, h.threads[t].entity.lag = 0, 0
	}
	return h.late
}

// lateBelow returns how many threads of a queue, and of the queues below, woke up late.
func (h *host) lateBelow(g, c int) (n int) {
	for _, m := range h.rq(g, c).list {
		if isGroup(m) {
			n += h.lateBelow(^m, c)
		} else if h.threads[m].late > 0 {
			n++
		}
	}
	return n
}

func isGroup(member int) bool { return member < 0 }
