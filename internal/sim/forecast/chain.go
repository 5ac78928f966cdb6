package forecast

import (
	"container/list"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// thread is one thread of the container: its state, and the chain of steps that it did.
type thread struct {
	index     int
	tid, tgid uint32
	cgroup    uint64
	allowed   string
	cpu       int32
	first     int32 // CPU at its first sight
	pool      *Pool
	sleepElem *list.Element // in its pool's list of sleepers; nil: it does not sleep
	state     recording.State
	dying     bool

	woken int64 // -1: the recording missed the wake-up
	ran   bool  // since woken
	onAt  int64
	used  int64 // CPU time not yet in a step
	run   int64 // CPU time since it woke
	// handed is the CPU time of the thread of the container that woke it, from its own wake-up on, and of the one that woke
	// that; 0: something else woke it. byWaker is the part of the first.
	handed, byWaker int64
	longest         int64 // longest run that ended
	slept           bool  // a run has ended
	sleptAt         int64
	steps           []simulate.ReplayStep
	ranks           []sleepRank // of each sleep that another pool's thread ended
	wakers          []*thread   // of each StepAwait
	timerSleeps     []timerSleep
	poll            poll  // that began the run under way
	gives           *task // to others; nil: nothing since it was woken
	part            *part // of another thread's task; nil: none
	joins           joins
	timerKnown      bool // detectPeriodicTimer has decided about its timerSleeps
	ended           []endedRun
	total           int64 // CPU time
	wakes           wakeups
	delay           int64 // of the run under way
	closed          bool  // the thread has ended
}

// addThread adds a thread of the header.
func (b *builder) addThread(h *recording.Thread) {
	if h.TID == 0 || b.threads[h.TID] != nil {
		return
	}
	t := b.thread(h.TID)
	if t == nil {
		return
	}
	t.tgid, t.cgroup, t.allowed, t.cpu, t.first = h.TGID, h.Cgroup, h.Allowed, h.CPU, h.CPU
	b.joinPool(t, b.pool(h.TGID, h.Comm))
	if t.state = h.State; t.state != recording.Sleeping {
		b.leaveSleep(t)
	}
	if c := b.cpus[h.CPU]; h.State == recording.Running && c != nil && c.thread == nil {
		c.thread = t
	} else if h.State == recording.Running {
		t.state = recording.Runnable
	}
}

// thread returns the thread with that id. It makes an unknown one, asleep. It returns nil for id 0 and beyond
// maxThreads.
func (b *builder) thread(tid uint32) *thread {
	if tid == 0 {
		return nil
	}
	if t := b.threads[tid]; t != nil {
		return t
	}
	if len(b.order) == maxThreads {
		b.leftOut.add(tid)
		return nil
	}
	t := &thread{index: len(b.order), tid: tid, woken: -1, sleptAt: -1}
	t.pool = b.pool(0, "")
	b.enterSleep(t)
	b.threads[tid] = t
	b.order = append(b.order, t)
	return t
}

func (b *builder) step(t *thread, s simulate.ReplayStep) {
	t.steps = append(t.steps, s)
	b.steps++
}

// flush makes a step of the CPU time that a thread has used up to now.
func (b *builder) flush(t *thread) {
	if t.state == recording.Running {
		t.charge(b.now - t.onAt)
		t.onAt = b.now
	}
	if t.used > 0 {
		b.step(t, simulate.ReplayStep{Kind: simulate.StepRun, For: time.Duration(t.used)})
		t.used = 0
	}
}

// workedLast reports whether the last thing in a thread's chain is work, so that it may have caused a wake-up. The thread
// need not run at that instant: a wake-up that reaches another CPU by an interrupt (ttwu_queue_wakelist of Linux 5.8 and
// newer) may come after its waker went to sleep or lost its CPU.
func (t *thread) workedLast() bool {
	return t.state != recording.Runnable || t.ran || t.used > 0
}

// startRunning gives a thread a CPU. If the thread slept, the recording missed its wake-up.
func (b *builder) startRunning(t *thread, c int32) {
	switch t.state {
	case recording.Running:
		b.stopRunning(t, true)
	case recording.Sleeping:
		b.leaveSleep(t)
		b.step(t, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(b.now)})
		t.woken, t.ran, t.poll = -1, false, poll{}
	}
	t.state, t.cpu, t.onAt = recording.Running, c, b.now
	if t.woken >= 0 && !t.ran {
		t.ran = true
		t.delay = b.now - t.woken
		t.pool.recorded.Delay.Add(time.Duration(t.delay))
	}
}

// stopRunning takes its CPU from a thread. A thread that is not runnable sleeps, which ends its run.
func (b *builder) stopRunning(t *thread, runnable bool) {
	if c := b.cpus[t.cpu]; c != nil && c.thread == t {
		c.thread = nil
	}
	if t.state == recording.Sleeping && !runnable {
		return
	}
	if runnable {
		if t.state == recording.Running {
			t.charge(b.now - t.onAt)
		}
		t.state = recording.Runnable
		return
	}
	b.flush(t)
	b.through(t)
	t.state = recording.Sleeping
	b.enterSleep(t)
	if t.woken >= 0 && t.ran {
		t.pool.recorded.Response.Add(time.Duration(b.now - t.woken))
		b.keepRun(t)
	}
	t.longest, t.slept = max(t.longest, t.run), true
	t.woken, t.run, t.sleptAt = -1, 0, b.now
}

// charge notes CPU time.
func (t *thread) charge(ns int64) {
	t.used += ns
	t.run += ns
	t.total += ns
}

// exit ends a thread.
func (b *builder) exit(t *thread) {
	b.stopRunning(t, false)
	b.leaveSleep(t)
	b.step(t, simulate.ReplayStep{Kind: simulate.StepEnd})
	t.closed = true
	delete(b.threads, t.tid) // the kernel may use the id again
}

// leaveContainer ends a thread that moved to another container.
func (b *builder) leaveContainer(t *thread, owner uint32) {
	c := b.cpus[t.cpu]
	if c != nil && c.thread == t {
		c.owner, c.since = owner, b.now
		defer b.hold(c) // its CPU is not of the container from here on
	}
	b.exit(t)
}

// endRecording ends a thread's chain. A recording does not show how long its last run would have gone on. The
// run is endless if the thread had not slept before, or never ran as long.
func (b *builder) endRecording(t *thread) {
	if t.closed {
		return
	}
	if t.state == recording.Sleeping {
		if len(t.steps) > 0 && !t.repeats() {
			b.step(t, simulate.ReplayStep{Kind: simulate.StepEnd})
		}
		return
	}
	b.flush(t)
	if !t.slept || t.run > t.longest {
		b.step(t, simulate.ReplayStep{Kind: simulate.StepRun, For: simulate.Endless})
	}
}

// repeats reports whether the thread can begin its chain again when it is through. It must not have exited,
// and no wake-up but the first may come from outside at a moment of its own. The recording did not see the
// first sleep begin.
func (t *thread) repeats() bool {
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
