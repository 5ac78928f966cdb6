package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// A thread that gives a task to several others and sleeps is woken by the one that is through last: a virtual machine's
// thread by its collector's, a query by its parallel workers. In a replay another one may be last. A recording does not say
// that the thread waits for all of them, but each time that it is woken by the last one, and never by an earlier one, makes it
// more likely: of n threads that end independently, one taken by chance is the last in one of n times.
//
// Worked example: the virtual machine's thread wakes two threads of a collector, and sleeps. 57 times one of the two wakes
// it, while the other one sleeps. A thread that waits for one of the two only would have seen the other one at work about 28
// times.

const (
	// minJoins is how many times a thread must be woken by one of those that it gave a task to.
	minJoins = 10
	// joinShare is the share of them in which all the others must have been through.
	joinShare = 0.9
	// maxTask bounds the threads that one task is given to.
	maxTask = 64
	// minPart is the CPU time from which on a thread that was woken does a part. With less it finds that others took all.
	minPart = 50 * time.Microsecond
)

// task is what a thread gave to others of one pool since it was last woken.
type task struct {
	parts []*part
	ended bool // the thread that gave it was woken
}

// part is what one thread did of a task.
type part struct {
	task *task
	of   *thread
	end  int // the step where it was through; -1: it is not, or did nothing
}

// join is the end of a task: the StepAwait that the last part ended, and the steps where the others were.
type join struct {
	await  int
	others []*part
}

// joins are how often one of several parts woke the thread that gave the task, and those times when all others were through.
type joins struct {
	woken int
	all   []join
}

// gave notes that a thread woke another one, which may do a part of a task: of the waker's own, or of that of which the waker
// does a part.
func (b *builder) gave(waker, t *thread) {
	t.part = nil
	if waker == nil || waker == t {
		return
	}
	of := waker.gives
	if p := waker.part; p != nil && !p.task.ended && waker.pool == t.pool {
		of = p.task
	} else if of == nil {
		of = &task{}
		waker.gives = of
	}
	if len(of.parts) < maxTask && (len(of.parts) == 0 || of.parts[0].of.pool == t.pool) {
		t.part = &part{of, t, -1}
		of.parts = append(of.parts, t.part)
	}
}

// through notes that a thread goes to sleep, so that its part of a task is done. It leaves a step there that has no effect
// unless the task turns out to be waited for.
func (b *builder) through(t *thread) {
	if p := t.part; p != nil && p.end < 0 && time.Duration(t.run) >= minPart && !p.task.ended {
		p.end = len(t.steps)
		b.step(t, simulate.ReplayStep{Kind: simulate.StepReply, Thread: -1})
	}
}

// joined notes that a thread is woken, by another one or by something else, and with that the end of its task.
func (b *builder) joined(t, waker *thread) {
	done := t.gives
	t.gives = nil
	if done == nil {
		return
	}
	done.ended = true
	if waker == nil || waker.part == nil || waker.part.task != done {
		return
	}
	through, others := true, []*part{}
	for _, p := range done.parts {
		switch {
		case p.of == waker:
		case p.end >= 0:
			others = append(others, p)
		case p.of.part == p && p.of.State != schedule.Sleeping && b.atWork(p.of) >= minPart:
			through = false
		}
	}
	if through && len(others) == 0 {
		return
	}
	t.joins.woken++
	if through {
		t.joins.all = append(t.joins.all, join{len(t.steps), others})
	}
}

// atWork is the CPU time of a thread since it woke.
func (b *builder) atWork(t *thread) time.Duration {
	if t.State == schedule.Running {
		return time.Duration(t.run + b.now - t.onAt)
	}
	return time.Duration(t.run)
}

// waitForParts makes a thread wait for all parts of its tasks, if it does.
func (t *thread) waitForParts() {
	if n := t.joins.woken; n < minJoins || float64(len(t.joins.all)) < joinShare*float64(n) {
		return
	}
	for _, j := range t.joins.all {
		for _, p := range j.others {
			p.of.steps[p.end] = simulate.ReplayStep{Kind: simulate.StepWake, Thread: int32(t.index), For: time.Duration(j.await)}
		}
		t.steps[j.await].Thread = int32(len(j.others))
	}
}
