package forecast

import (
	"container/list"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// thread is one thread of the container: its state, and the chain of steps that it did.
type thread struct {
	*schedule.Thread
	index     int   // in the order of their beginnings
	first     int32 // CPU at its first sight
	pool      *Pool
	sleepElem *list.Element // in its pool's list of sleepers; nil: it does not sleep

	woken int64 // -1: the recording missed the wake-up
	ran   bool  // since woken
	onAt  int64
	used  int64 // CPU time not yet in a step
	run   int64 // CPU time since it woke
	// before is the CPU time of the run that ended when it went to sleep.
	before      int64
	handed      handed
	longest     int64 // longest run that ended
	slept       bool  // a run has ended
	sleptAt     int64
	steps       []simulate.ReplayStep
	ranks       []sleepRank // of each sleep that another pool's thread ended
	wakers      []*thread   // of each StepAwait
	timerSleeps []timerSleep
	poll        poll  // that began the run under way
	gives       *task // to others; nil: nothing since it was woken
	part        *part // of another thread's task; nil: none
	joins       joins
	timerKnown  bool // detectPeriodicTimer has decided about its timerSleeps
	ended       []endedRun
	total       int64 // CPU time
	wakes       wakeups
	delay       int64 // of the run under way
	closed      bool  // the thread has ended

	served     *exchange // of its last read or write; nil: none
	servedRead bool      // it was a read
	servedAt   int64     // CPU time then
	// CPU time from the read of one request to that of another, and from answer to answer
	afterReads, beforeWrites int64
}

// own is what is kept of a thread; nil: it is not known, or the replay has no place for it.
func (b *builder) own(t *schedule.Thread) *thread {
	if t == nil {
		return nil
	}
	return b.threads[t.Index]
}

// begin adds a thread, asleep, while there is a place for it.
func (b *builder) begin(of *schedule.Thread) {
	for len(b.threads) <= of.Index {
		b.threads = append(b.threads, nil)
	}
	if len(b.order) == maxThreads {
		b.leftOut++
		return
	}
	t := &thread{Thread: of, index: len(b.order), woken: -1, sleptAt: -1}
	t.pool = b.pool(of)
	b.enterSleep(t)
	b.threads[of.Index] = t
	b.order = append(b.order, t)
}

func (b *builder) step(t *thread, s simulate.ReplayStep) {
	t.steps = append(t.steps, s)
	b.steps++
}

// flush makes a step of the CPU time that a thread has used up to now.
func (b *builder) flush(t *thread) {
	if t.State == schedule.Running {
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
	return t.State == schedule.Sleeping || t.State == schedule.Running || t.ran || t.used > 0
}

// did takes what a thread does now. If it slept, the recording missed its wake-up.
func (b *builder) did(t *thread, c *schedule.Change) {
	switch {
	case c.Was.State == schedule.Running:
		t.charge(b.now - t.onAt)
	case c.Was.State == schedule.Sleeping:
		if b.leaveSleep(t); c.Event != nil {
			b.step(t, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(b.now)})
			t.woken, t.ran, t.poll = -1, false, poll{}
		}
	}
	switch t.State {
	case schedule.Running:
		t.onAt = b.now
		if t.woken >= 0 && !t.ran {
			t.ran = true
			t.delay = b.now - t.woken
			t.pool.recorded.Delay.Add(time.Duration(t.delay))
		}
	case schedule.Sleeping:
		b.sleep(t)
	}
}

// sleep ends a thread's run.
func (b *builder) sleep(t *thread) {
	b.flush(t)
	b.through(t)
	b.enterSleep(t)
	if t.woken >= 0 && t.ran {
		t.pool.recorded.Response.Add(time.Duration(b.now - t.woken))
		b.keepRun(t)
	}
	t.longest, t.slept = max(t.longest, t.run), true
	t.woken, t.before, t.run, t.sleptAt = -1, t.run, 0, b.now
}

// charge notes CPU time.
func (t *thread) charge(ns int64) {
	t.used += ns
	t.run += ns
	t.total += ns
}

// end ends a thread.
func (b *builder) end(t *thread) {
	b.leaveSleep(t)
	b.step(t, simulate.ReplayStep{Kind: simulate.StepEnd})
	t.closed = true
	b.threads[t.Index] = nil
}

// endRecording ends a thread's chain. A recording does not show how long its last run would have gone on. The
// run is endless if the thread had not slept before, or never ran as long.
func (b *builder) endRecording(t *thread) {
	if t.closed {
		return
	}
	if t.State == schedule.Sleeping {
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
