package simulate

import (
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// System calls. Up to 6.17 a CPU that is throttled runs nothing of the group.
// From 6.18 on (e1fad12dcb66) a thread is parked as it returns to user mode: a
// call runs through the throttling, and what it uses is a debt. Here such a
// thread stands in the root's run queue meanwhile, as if it were a thread of the
// root; its own groups are charged.

// The steps of a thread of kind kernel.
const (
	stepEnter  uint8 = iota // in user mode, before the call
	stepCall                // in the call
	stepReturn              // in user mode again
)

// onCall is the end of a step.
func (h *host) onCall(t int) {
	th := &h.threads[t]
	switch th.step {
	case stepEnter:
		th.step = stepCall
		h.calling = append(h.calling, t)
		h.goOn(t, h.draw(h.works[th.work].Run))
	case stepCall:
		th.step = stepReturn
		i := slices.Index(h.calling, t)
		h.calling = slices.Delete(h.calling, i, i+1)
		if th.in == th.group {
			h.onCall(t)
			return
		}
		h.update(th.cpu, true)
		th.left = 0
		h.dequeue(t)
		h.enqueue(t)
		h.schedule(th.cpu, th.group)
	default:
		h.finished(t)
	}
}

// runThrough lets the threads below a group that is throttled on a CPU, and are
// in a call there, go on.
func (h *host) runThrough(g, c int) {
	if !h.scenario.Host.Rules.Has(bandwidth.Since6_18) {
		return
	}
	for _, t := range h.calling {
		th := &h.threads[t]
		if th.cpu == c && th.queued && th.in == th.group && th.group > 0 && h.below(th.group, g) {
			h.dequeue(t)
			th.in = 0
			h.enqueue(t)
		}
	}
}

// comeBack takes those back whose group may run again.
func (h *host) comeBack(g, c int) {
	for _, t := range h.calling {
		th := &h.threads[t]
		if th.cpu == c && th.in != th.group && h.below(th.group, g) && !h.blocked(th.group, c) {
			h.dequeue(t)
			h.enqueue(t)
		}
	}
}

// below says whether a group is another one or lies below it.
func (h *host) below(g, above int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if g == above {
			return true
		}
	}
	return false
}
