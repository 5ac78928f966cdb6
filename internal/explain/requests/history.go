package requests

import (
	"sort"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// state is what a thread does.
type state uint8

const (
	sleeping state = iota
	runnable
	held
	running
)

// change is a moment from which on a thread is in a state.
type change struct {
	at    int64
	quota int    // index of the level that holds it back
	waker uint32 // a thread of the container; 0: none
	state state
	woken bool // it slept until then
}

// thread is a thread of the container with its latest changes, the oldest first.
type thread struct {
	tid, tgid uint32
	pool      string
	ended     bool
	log       []change
}

// last is the thread's state after its last change.
func (t *thread) last() change {
	if len(t.log) == 0 {
		return change{}
	}
	return t.log[len(t.log)-1]
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
	cpus    map[int32]*thread // that run there
	changes int
	since   int64 // changes before it are forgotten
	now     int64
}

// thread returns the thread with that id, and makes an unknown one, which sleeps. It returns nil for 0, and if there
// are too many.
func (h *history) thread(tid uint32) *thread {
	t := h.threads[tid]
	if t == nil && tid != 0 && len(h.threads) < maxThreads {
		t = &thread{tid: tid}
		h.threads[tid] = t
	}
	return t
}

// set notes a thread's next state.
func (h *history) set(t *thread, next change) {
	was := t.last()
	next.at = h.now
	next.woken = was.state == sleeping && next.state != sleeping
	if was.state == next.state && was.quota == next.quota && len(t.log) > 0 {
		return
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

// add takes the next event.
func (h *history) add(e *recording.Event, quotas *quotas) {
	h.now = max(h.now, e.AtNS)
	switch e.Kind {
	case recording.Switch:
		h.switched(e, quotas)
	case recording.Wakeup:
		if t := h.thread(e.Thread); t != nil && t.last().state == sleeping {
			h.set(t, stopped(e, quotas, change{state: runnable, waker: e.Waker}))
		}
	case recording.Hold:
		if t := h.threads[e.Thread]; t != nil && (t.last().state == runnable || t.last().state == held) {
			h.set(t, change{state: held, quota: quotas.of(e.Cgroup)})
		}
	case recording.Release:
		if t := h.threads[e.Thread]; t != nil && t.last().state == held {
			h.set(t, change{state: runnable})
		}
	case recording.Exit, recording.Leave:
		if t := h.threads[e.Thread]; t != nil {
			t.ended = true
			if e.Kind == recording.Leave || t.last().state != running {
				h.set(t, change{})
			}
		}
	}
}

// stopped is the change to a runnable state, or to one in which a quota holds the thread back.
func stopped(e *recording.Event, quotas *quotas, c change) change {
	if e.Flags&recording.Throttled != 0 {
		c.state, c.quota = held, quotas.of(e.Cgroup)
	}
	return c
}

func (h *history) switched(e *recording.Event, quotas *quotas) {
	if was := h.cpus[e.CPU]; was != nil && was.tid != e.Thread && was.last().state == running {
		h.set(was, change{}) // its switch was not seen
	}
	if prev := h.thread(e.Thread); prev != nil {
		next := change{}
		if e.Flags&recording.PrevRunnable != 0 && !prev.ended {
			next = stopped(e, quotas, change{state: runnable})
		}
		h.set(prev, next)
	}
	next := h.thread(e.NextThread)
	h.cpus[e.CPU] = next
	if next != nil {
		h.set(next, change{state: running})
	}
}

// quotas are the levels that may hold threads back.
type quotas struct {
	levels  []recording.Level
	own     int // so many of the first are the container's own or below it
	unknown int // the likeliest where the event does not know
}

func newQuotas(h *recording.Header) *quotas {
	q := &quotas{own: len(h.SubLevels)}
	q.levels = append(q.levels, h.SubLevels...)
	if len(h.Levels) == 0 {
		q.levels = append(q.levels, recording.Level{Path: h.Target.Path, ID: h.Target.ID})
	}
	q.levels = append(q.levels, h.Levels...)
	q.own++
	q.unknown = q.own - 1
	least := 0.0
	for i, l := range q.levels {
		if l.QuotaNS == nil || *l.QuotaNS <= 0 || l.PeriodNS <= 0 || i < q.own-1 {
			continue
		}
		if cpus := float64(*l.QuotaNS) / float64(l.PeriodNS); least == 0 || cpus < least {
			least, q.unknown = cpus, i
		}
	}
	return q
}

// of returns the level with the quota of an event's cgroup.
func (q *quotas) of(cgroup uint64) int {
	for i := range q.levels {
		if q.levels[i].ID == cgroup && cgroup != 0 {
			return i
		}
	}
	return q.unknown
}
