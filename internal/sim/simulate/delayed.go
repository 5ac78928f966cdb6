package simulate

import (
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// delayed is a member that went to sleep with a negative lag. From 6.12 on it stays in its queue until the
// queue picks it, or until it wakes up (DELAY_DEQUEUE: dequeue_entity, pick_next_entity,
// requeue_delayed_entity). So its own lag shrinks meanwhile, and members beside it have one. It does not count
// as runnable.
type delayed struct {
	member             int
	weight             int64
	vruntime, deadline int64 // the member's, which has others once it is gone
	// gone: a quota parked the queue, and the member woke up since. What is left is its part of the average
	// at the moment of parking: see comeBackIn.
	gone bool
}

// leaveAsleep takes a member out of a queue because it, or the last thread below it, goes to sleep.
func (h *host) leaveAsleep(q *rq, member, c int) {
	h.leave(q, member, c)
	e := h.entity(member, c)
	if !h.delay || e.lag >= 0 || len(q.list) == 0 || h.leavesAtOnce(member) {
		return
	}
	h.renew(e, member, c)
	q.delayed = append(q.delayed, delayed{member: member, weight: h.weight(member, c), vruntime: e.vruntime, deadline: e.deadline})
	e.delayed = true
}

// leavesAtOnce reports whether another scheduler has a member, or a thread is in a queue that is not its own.
func (h *host) leavesAtOnce(member int) bool {
	if isGroup(member) {
		return h.bounded && h.isNarrow(^member)
	}
	th := &h.threads[member]
	return th.in != th.group || h.bounded && h.isNarrow(th.group)
}

// stays reports whether a member that wakes up is still in the queue of g on a CPU. A queue that a quota has
// parked has picked it.
func (h *host) stays(member, g, c int) bool {
	e := h.entity(member, c)
	if e.delayed && h.scenario.Host.Rules.Has(bandwidth.Since6_18) && !h.reachable(g, c) {
		q := h.rq(g, c)
		q.delayed[q.delayedAt(member)].gone = true
		e.delayed, e.lag = false, 0
	}
	return e.delayed
}

// joinAwake puts a member that wakes up into the queue of g. One that is still there stays where it is, but has
// no positive lag.
func (h *host) joinAwake(member, g, c int) {
	q, e := h.rq(g, c), h.entity(member, c)
	if !h.stays(member, g, c) {
		h.place(q, member, c)
		return
	}
	owed, i := e.vruntime < h.average(q, c), q.delayedAt(member)
	q.delayed, e.delayed = slices.Delete(q.delayed, i, i+1), false
	if owed {
		e.lag = 0
		h.place(q, member, c)
		return
	}
	q.list = append(q.list, member)
}

// drop takes a delayed member out of a queue that has picked it. A positive lag is lost (DELAY_ZERO).
func (h *host) drop(q *rq, i, c int) {
	d := q.delayed[i]
	if !d.gone {
		e := h.entity(d.member, c)
		e.delayed, e.lag, e.slept = false, min(0, h.average(q, c)-d.vruntime), h.now
	}
	q.delayed = slices.Delete(q.delayed, i, i+1)
}

// dropAll does so where no other member is left.
func (h *host) dropAll(q *rq, c int) {
	for len(q.delayed) > 0 {
		first := 0
		for i, d := range q.delayed {
			if d.vruntime < q.delayed[first].vruntime {
				first = i
			}
		}
		h.drop(q, first, c)
	}
}

func (q *rq) delayedAt(member int) int {
	return slices.IndexFunc(q.delayed, func(d delayed) bool { return d.member == member && !d.gone })
}
