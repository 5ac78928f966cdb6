package simulate

import (
	"cmp"
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// comeBackIn places what a quota held in a group's queue on a CPU, and in those
// below, anew: from 6.18 on threads are parked one by one, in the order in which
// they are picked, and each takes with it what it is owed. Of groups beside each
// other the last one to leave is owed nothing, being alone, and the first one to
// come back gets nothing, the queue being empty (place_entity). Since they come
// back in a fixed order (tg_unthrottle_up along walk_tg_tree_from, which begins
// with the newest child), what the newest is owed is lost each time, and what an
// older one is owed is not.
//
// Threads of one group come back in the reverse of the order in which they left,
// so that each finds those beside which it was owed what it is: nothing is lost.
// Who wakes up while they are away comes late: it is alone when it is parked, last
// of all, and so is its group, whatever that was owed. It comes back first, level
// with the one that was picked last, behind all that are owed something.
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
	if len(late) == 0 && alone {
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

// takeLate takes the threads that woke up late out of a queue, in the order in which
// they did, and gives them until the next call.
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

// lateBelow is how many threads of a queue, and of those below, woke up late.
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
