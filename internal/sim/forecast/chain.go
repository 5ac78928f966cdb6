package forecast

import (
	"container/list"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// thread is one thread of the container: what it is doing, and the chain of what it did.
type thread struct {
	index     int
	tid, tgid uint32
	cgroup    uint64
	allowed   string
	cpu       int32
	first     int32 // where it began
	pool      *Pool
	bed       *list.Element // among those of its pool that sleep; nil: it does not
	state     recording.State
	dying     bool

	woken   int64 // -1: not seen
	ran     bool  // since woken
	onAt    int64
	used    int64 // CPU time not yet in a step
	run     int64 // CPU time since it woke
	longest int64 // run that ended
	slept   bool  // a run has ended
	sleptAt int64
	steps   []simulate.ReplayStep
	told    []told // by others, of each sleep that may have been for want of work
	naps    []nap
	settled bool // what its naps are: see relative
	closed  bool // nothing comes any more
}

// begin takes in a thread of the header.
func (b *Builder) begin(h *recording.Thread) {
	if h.TID == 0 || b.threads[h.TID] != nil {
		return
	}
	t := b.thread(h.TID)
	if t == nil {
		return
	}
	t.tgid, t.cgroup, t.allowed, t.cpu, t.first = h.TGID, h.Cgroup, h.Allowed, h.CPU, h.CPU
	b.join(t, b.pool(h.TGID, h.Comm))
	if t.state = h.State; t.state != recording.Sleeping {
		b.rise(t)
	}
	if c := b.cpus[h.CPU]; h.State == recording.Running && c != nil && c.thread == nil {
		c.thread = t
	} else if h.State == recording.Running {
		t.state = recording.Runnable
	}
}

// thread is the thread with that id, made if it is new: asleep. nil for 0 and beyond the bound.
func (b *Builder) thread(tid uint32) *thread {
	if tid == 0 {
		return nil
	}
	if t := b.threads[tid]; t != nil {
		return t
	}
	if len(b.order) == maxThreads {
		b.left++
		return nil
	}
	t := &thread{index: len(b.order), tid: tid, woken: -1, sleptAt: -1}
	t.pool = b.pool(0, "")
	b.lie(t)
	b.threads[tid] = t
	b.order = append(b.order, t)
	return t
}

func (b *Builder) step(t *thread, s simulate.ReplayStep) {
	t.steps = append(t.steps, s)
	b.steps++
}

// flush makes a step of the CPU time that a thread has used up to now.
func (b *Builder) flush(t *thread) {
	if t.state == recording.Running {
		t.used += b.now - t.onAt
		t.run += b.now - t.onAt
		t.onAt = b.now
	}
	if t.used > 0 {
		b.step(t, simulate.ReplayStep{Kind: simulate.StepRun, For: time.Duration(t.used)})
		t.used = 0
	}
}

// on gives a thread a CPU. One that was asleep was woken unseen.
func (b *Builder) on(t *thread, c int32) {
	switch t.state {
	case recording.Running:
		b.off(t, true)
	case recording.Sleeping:
		b.rise(t)
		b.step(t, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(b.now)})
		t.woken, t.ran = -1, false
	}
	t.state, t.cpu, t.onAt = recording.Running, c, b.now
	if t.woken >= 0 && !t.ran {
		t.ran = true
		t.pool.Recorded.Delay.Add(time.Duration(b.now - t.woken))
	}
}

// off takes its CPU from a thread; one that does not want another sleeps, which ends its run.
func (b *Builder) off(t *thread, runnable bool) {
	if c := b.cpus[t.cpu]; c != nil && c.thread == t {
		c.thread = nil
	}
	if t.state == recording.Sleeping && !runnable {
		return
	}
	if runnable {
		if t.state == recording.Running {
			t.used += b.now - t.onAt
			t.run += b.now - t.onAt
		}
		t.state = recording.Runnable
		return
	}
	b.flush(t)
	t.state = recording.Sleeping
	b.lie(t)
	if t.woken >= 0 && t.ran {
		t.pool.Recorded.Response.Add(time.Duration(b.now - t.woken))
	}
	t.longest, t.slept = max(t.longest, t.run), true
	t.woken, t.run, t.sleptAt = -1, 0, b.now
}

// end is a thread's exit.
func (b *Builder) end(t *thread) {
	b.off(t, false)
	b.rise(t)
	b.step(t, simulate.ReplayStep{Kind: simulate.StepEnd})
	t.closed = true
	delete(b.threads, t.tid) // the number may be given again
}

// leave is a thread that moved to another container.
func (b *Builder) leave(t *thread, owner uint32) {
	if c := b.cpus[t.cpu]; c != nil && c.thread == t {
		c.owner, c.since = owner, b.now
	}
	b.end(t)
}

// cut is what a thread does when the recording ends: whether a run goes on nobody knows. It does if the thread had not
// slept before, or never ran as long.
func (b *Builder) cut(t *thread) {
	if t.closed {
		return
	}
	if t.state == recording.Sleeping {
		if len(t.steps) > 0 && !t.again() {
			b.step(t, simulate.ReplayStep{Kind: simulate.StepEnd})
		}
		return
	}
	b.flush(t)
	if !t.slept || t.run > t.longest {
		b.step(t, simulate.ReplayStep{Kind: simulate.StepRun, For: simulate.Endless})
	}
}

// again says whether a thread can begin again when it is through: nothing in its chain but the first, whose sleep the
// recording did not see begin, came from outside at a moment of its own, and it did not exit.
func (t *thread) again() bool {
	sleeps := false
	for i, s := range t.steps {
		switch s.Kind {
		case simulate.StepUntil, simulate.StepEnd:
			if i > 0 {
				return false
			}
		case simulate.StepSleep, simulate.StepAwait:
			sleeps = true
		}
	}
	return sleeps
}
