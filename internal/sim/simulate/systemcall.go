package simulate

import (
	"slices"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// System calls. Up to 6.17 a throttled CPU runs nothing of the group. From 6.18 on (e1fad12dcb66) the kernel
// parks a thread as it returns to user mode. A call runs through the throttling, and its CPU time becomes a
// debt. Here such a thread is in the root's run queue meanwhile, like a thread of the root, but its own
// groups are charged.

// The steps of a thread of kind kernel.
const (
	stepEnter  uint8 = iota // in user mode, before the call
	stepCall                // in the call
	stepReturn              // in user mode again
)

// onCall handles the end of a step.
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

// runThrough lets threads go on that are in a call below a group that is throttled on a CPU.
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

// comeBack returns the threads to their queues whose group may run again.
func (h *host) comeBack(g, c int) {
	for _, t := range h.calling {
		th := &h.threads[t]
		if th.cpu == c && th.in != th.group && h.below(th.group, g) && !h.blocked(th.group, c) {
			h.dequeue(t)
			h.enqueue(t)
		}
	}
}

// below reports whether a group is another one or a descendant of it.
func (h *host) below(g, above int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if g == above {
			return true
		}
	}
	return false
}
