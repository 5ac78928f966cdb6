package simulate

import (
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// comeBackIn places what a quota held in a group's queue on a CPU, and in those
// below, anew: from 6.18 on threads are parked one by one, in the order in which
// they are picked, and each takes with it what it is owed. Of members beside each
// other the last one to leave is owed nothing, being alone; so is who wakes up
// later (late) and is parked at once. They come back in a fixed order
// (tg_unthrottle_up along walk_tg_tree_from, which begins with the newest child;
// then the threads, the last one parked first), and the first one gets nothing,
// the queue being empty (place_entity). So what the newest group is owed is lost
// each time, and what an older one is owed is not.
//
// It gives the number of threads that came late.
func (h *host) comeBackIn(g, c int) (late int) {
	if !h.scenario.Host.Rules.Has(bandwidth.EraF) {
		return 0
	}
	q := h.rq(g, c)
	from := len(h.parked)
	// Who was not there when the others left does not count for what they are owed.
	for i := 0; i < len(q.list); {
		m := q.list[i]
		n, alone := 0, false
		if isGroup(m) {
			below := h.rq(^m, c)
			n = h.comeBackIn(^m, c)
			below.parking, alone = below.threads-n, n >= below.threads
			below.late = n > 0
		} else if h.threads[m].late {
			h.threads[m].late = false
			n, alone = 1, true
		}
		late += n
		if !alone {
			i++
			continue
		}
		h.entity(m, c).lag = 0
		q.list = slices.Delete(q.list, i, i+1)
		h.parked = append(h.parked, m)
	}
	early := len(h.parked)
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
	back := h.parked[from:]
	slices.Reverse(back[:early-from])
	slices.Reverse(back[early-from:])
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
	return late
}

func isGroup(member int) bool { return member < 0 }
