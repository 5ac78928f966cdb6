package requests

import (
	"sort"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// change is a moment from which on a thread is in a state.
type change struct {
	at    int64
	level int    // that holds it back
	waker uint32 // a thread of the container; 0: none
	state schedule.State
	woken bool // it slept until then
}

// thread is a thread of the container with its latest changes, the oldest first.
type thread struct {
	tid   uint32
	pool  string
	ended bool
	log   []change
}

// before returns the index of the last change before a time; -1: there is none.
func (t *thread) before(at int64) int {
	return sort.Search(len(t.log), func(i int) bool { return t.log[i].at >= at }) - 1
}

// wake returns the last wake-up of the thread after from and before to.
func (t *thread) wake(from, to int64) (change, bool) {
	for i := t.before(to); i >= 0 && t.log[i].at > from; i-- {
		if t.log[i].woken {
			return t.log[i], true
		}
	}
	return change{}, false
}

// Bounds of the memory of a scan, whatever the events say.
const (
	maxThreads = 1 << 16
	maxChanges = 1 << 19
	maxCounted = 1 << 20
)

// history has the latest changes of all threads.
type history struct {
	threads map[uint32]*thread
	changes int
	since   int64 // changes before it are forgotten
	now     int64
}

// thread returns the thread with that id, and makes an unknown one, which sleeps. It returns nil if there are too many.
func (h *history) thread(tid uint32) *thread {
	t := h.threads[tid]
	if t == nil && len(h.threads) < maxThreads {
		t = &thread{tid: tid}
		h.threads[tid] = t
	}
	return t
}

// note notes a thread's next state.
func (h *history) note(t *thread, c *schedule.Change) {
	next := change{at: h.now, level: c.Thread.Level, state: c.Thread.State, woken: c.Was.State == schedule.Sleeping}
	if c.Waker != nil {
		next.waker = c.Waker.TID
	}
	if h.changes == maxChanges {
		h.forget()
	}
	t.log = append(t.log, next)
	h.changes++
}

// forget forgets the older half of the time, so often that a quarter of the changes go.
func (h *history) forget() {
	for h.changes > maxChanges*3/4 {
		h.since += (h.now - h.since + 1) / 2
		for tid, t := range h.threads {
			from := max(0, t.before(h.since+1)) // the state at that time stays
			if h.since >= h.now {
				from = max(0, len(t.log)-1)
			}
			t.log = append([]change(nil), t.log[from:]...)
			h.changes -= from
			if t.ended && len(t.log) <= 1 {
				h.changes -= len(t.log)
				delete(h.threads, tid)
			}
		}
		if h.since >= h.now {
			return
		}
	}
}
