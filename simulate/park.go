package simulate

import (
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
// Who wakes up while they are away is placed as if they were there.
func (h *host) comeBackIn(g, c int) {
	if !h.scenario.Host.Rules.Has(bandwidth.EraF) {
		return
	}
	q := h.rq(g, c)
	if !slices.ContainsFunc(q.list, isGroup) {
		for _, t := range q.list {
			e := h.entity(t, c)
			e.deadline = e.vruntime + virtual(h.slice, unit)
		}
		return
	}
	for _, m := range q.list {
		if isGroup(m) {
			h.rq(^m, c).parking = h.rq(^m, c).threads
			h.comeBackIn(^m, c)
		}
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
		h.parked = append(h.parked, m)
	}
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

func isGroup(member int) bool { return member < 0 }
