package simulate

import "time"

// A thread of a shared queue waits within its work for other threads, such as for a lock. In the recording the thread that
// ended the wait was at work. In a replay threads take the work in another order, and what ended the wait may still be
// in the queue. Work in a queue holds no lock. To wait for it stops the pool for ever once all of its threads wait so.
//
// So a wait ends by the wake-up that ended it in the recording, and not by the next one: with work of one recorded thread
// done by two, the next one may be of the other. A thread does not wait for work of its own pool that no thread has
// begun, nor for another thread that waits for such work while all threads of that pool wait.
//
// Worked example: eight threads of a Java server share a queue and a lock. In the recording thread 3 answered two
// requests, and at the end of the second let go of the lock for thread 7. In a replay with less CPU thread 7 comes to its
// wait before any thread has taken that second request. It goes on at once.

// maxChain bounds how many waits are followed from one thread to the next.
const maxChain = 64

// replayAwait is the place of a StepAwait of a thread of a shared queue.
type replayAwait struct{ script, nth int32 }

// replayWait is a StepAwait within a script of a shared queue.
type replayWait struct {
	by     int32         // script that ends it; -1: none does
	waiter int32         // thread that waits; -1: none
	came   time.Duration // of the wake-up; never: not yet
	free   bool          // nothing waits for the wake-up any more
}

// sharesQueue reports whether the threads of a thread's workload share a queue.
func (h *host) sharesQueue(t int) bool {
	return h.replay.workQueues[h.threads[t].work].order != NotShared
}

// idlesIn reports whether a thread waits for work in a step.
func (s *ReplayStep) idlesIn(h *host, t int) bool { return s.idles() && h.sharesQueue(t) }

// findHolders finds the script that ends each wait within the work of shared queues.
func (h *host) findHolders() {
	r, some := h.replay, false
	for t := range r.Threads {
		if !h.sharesQueue(t) {
			continue
		}
		some = true
		script := t
		r.scripts[t].begun = true
		for i := range r.Threads[t].Steps {
			step := &r.Threads[t].Steps[i]
			s := &r.scripts[script]
			if step.Kind == StepAwait {
				r.awaits[t] = append(r.awaits[t], replayAwait{int32(script), int32(len(s.waits))})
			}
			switch {
			case step.idles() && script == t:
				script = r.items[t]
			case step.idles():
				script++
			case step.Kind == StepAwait:
				s.waits = append(s.waits, replayWait{by: -1, waiter: -1, came: never})
			}
		}
	}
	for t := range r.Threads {
		script, shared := t, h.sharesQueue(t)
		for i := range r.Threads[t].Steps {
			step := &r.Threads[t].Steps[i]
			switch to := int(step.Thread); {
			case step.Kind != StepWake:
			case step.Idle && h.sharesQueue(to):
				r.scripts[h.workAfter(to, step)].from = int32(script)
			case h.sharesQueue(to):
				at := r.awaits[to][step.For]
				r.scripts[at.script].waits[at.nth].by = int32(script)
			case some:
				by := &r.calls[to].by
				for len(*by) <= int(step.For) {
					*by = append(*by, -1)
				}
				(*by)[step.For] = int32(script)
			}
			switch {
			case shared && step.idles() && script == t:
				script = r.items[t]
			case shared && step.idles():
				script++
			}
		}
	}
}

// awaitInWork is replaySleep of a StepAwait within the work of a shared queue.
func (h *host) awaitInWork(t int) (came time.Duration, due bool) {
	s := &h.replay.scripts[h.replay.threads[t].script]
	w := &s.waits[s.next]
	s.next++
	if w.came >= 0 {
		return w.came, true
	}
	w.waiter = int32(t)
	if h.stuck(t) {
		w.waiter, w.free = -1, true
		return h.now, true
	}
	h.freeAllStuck()
	return 0, false
}

// endAwait ends the StepAwait of a thread of a shared queue that a StepWake names, or brings the work after it.
func (h *host) endAwait(to int, step *ReplayStep) {
	if step.Idle {
		h.bringWork(h.threads[to].work, h.workAfter(to, step))
		return
	}
	at := h.replay.awaits[to][step.For]
	switch w := &h.replay.scripts[at.script].waits[at.nth]; {
	case w.free:
	case w.waiter >= 0:
		t := int(w.waiter)
		w.waiter, w.came = -1, h.now
		h.replayWoken(t)
	default:
		w.came = h.now
	}
}

// came notes that a wake-up came.
func (c *replayCalls) came(nth int) {
	if nth >= len(c.by) {
		return
	}
	c.by[nth] = -1
	for c.first < len(c.by) && c.by[c.first] < 0 {
		c.first++
	}
}

// waitsFor is the script for which the thread of a script waits; -1: it does not wait for another thread.
func (h *host) waitsFor(script int) int {
	s := &h.replay.scripts[script]
	if !h.sharesQueue(s.of) {
		if c := &h.replay.calls[s.of]; (c.waiter.n > 0 || c.joining != nil) && c.first < len(c.by) {
			return int(c.by[c.first])
		}
		return -1
	}
	if s.next == 0 || s.waits[s.next-1].waiter < 0 {
		return -1
	}
	return int(s.waits[s.next-1].by)
}

// workAfter is the script that a StepWake out of an idle sleep brings.
func (h *host) workAfter(to int, step *ReplayStep) int {
	if at := h.replay.awaits[to][step.For]; int(at.script) != to {
		return int(at.script) + 1
	}
	return h.replay.items[to]
}

// stuck reports whether a thread's wait depends on work that no thread has begun, and that none will begin: of its own pool,
// or of one whose threads all wait.
func (h *host) stuck(t int) bool {
	own, script := true, h.waitsFor(h.replay.threads[t].script)
	for range maxChain {
		if script < 0 {
			return false
		}
		s := &h.replay.scripts[script]
		work := h.threads[s.of].work
		own = own && work == h.threads[t].work
		switch {
		case !h.sharesQueue(s.of) || s.begun:
			script = h.waitsFor(script)
		case own || h.allWait(work):
			return true
		default: // it has not come
			own, script = false, int(s.from)
		}
	}
	return false
}

// allWait reports whether every thread of a workload waits for another thread within its work.
func (h *host) allWait(work int) bool {
	w := &h.works[work]
	for t := w.first; t < w.first+w.count; t++ {
		if h.waitsFor(h.replay.threads[t].script) < 0 {
			return false
		}
	}
	return true
}

// freeStuck lets a thread of a workload go on that waits for what its queue has, where all of its threads wait.
func (h *host) freeStuck(work int) {
	if !h.allWait(work) {
		return
	}
	w := &h.works[work]
	for t := w.first; t < w.first+w.count; t++ {
		if h.stuck(t) {
			s := &h.replay.scripts[h.replay.threads[t].script]
			wait := &s.waits[s.next-1]
			wait.waiter, wait.free = -1, true
			h.replayWoken(t)
			return
		}
	}
}

// freeAllStuck is freeStuck for all workloads whose queue has work.
func (h *host) freeAllStuck() {
	for i := range h.works {
		if q := &h.replay.workQueues[i]; q.order != NotShared && q.ready.n > 0 {
			h.freeStuck(i)
		}
	}
}
