package forecast

import (
	"container/list"

	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// workQueue detects whether the threads of a pool take work from one shared queue. A producer then wakes a
// worker by its place among the sleeping workers, and not the thread that the work belongs to.
//
// It wakes the worker that has slept longest where waiters queue up, as at futexes and condition variables.
// It wakes the one that fell asleep last where a pool keeps few threads warm.
type workQueue struct {
	asleep list.List // *thread, in the order in which they fell asleep
	// wakeups counts wake-ups by threads of other pools while several threads slept. oldest and newest count
	// those that chose by that order. chance is how many of them a random choice would have put into one
	// order. timed counts wake-ups by timers and devices.
	wakeups, oldest, newest, timed int
	chance                         float64
	woken                          map[*thread]int // of wakeups, those of each thread
}

// minWakeups is the number of wake-ups from which on a pool's order counts.
const minWakeups = 30

// minElsewhere is the share of the wake-ups that threads other than the one with most must have. A worker that sleeps last is always
// the same one, until work comes while it is at work. One thread that takes what comes for all others, by the same name, is woken
// alone: a poller, or an acceptor.
const minElsewhere = 0.05

// wakeOrder returns the order in which a shared queue wakes the threads. It is NotShared unless the wake-ups
// are nearer to an order than to chance, and not those of one thread.
func (q *workQueue) wakeOrder() simulate.WakeOrder {
	ordered := func(n int) bool { return float64(n)-q.chance >= float64(q.wakeups)-float64(n) }
	switch {
	case q.wakeups < minWakeups || q.timed > q.wakeups || float64(q.elsewhere()) < minElsewhere*float64(q.wakeups):
		return simulate.NotShared
	case ordered(q.oldest):
		return simulate.OldestFirst
	case ordered(q.newest):
		return simulate.NewestFirst
	}
	return simulate.NotShared
}

// elsewhere is how many of the wake-ups were of other threads than the one with most.
func (q *workQueue) elsewhere() int {
	most := 0
	for _, n := range q.woken {
		most = max(most, n)
	}
	return q.wakeups - most
}

// forget drops what was counted, so that the queue is not shared.
func (q *workQueue) forget() {
	q.wakeups, q.oldest, q.newest, q.timed, q.chance, q.woken = 0, 0, 0, 0, 0, map[*thread]int{}
}

// enterSleep notes that a thread fell asleep.
func (b *builder) enterSleep(t *thread) {
	b.leaveSleep(t)
	t.sleepElem = b.queueOf(t.pool).asleep.PushBack(t)
}

// leaveSleep notes that a thread no longer sleeps, whatever woke it.
func (b *builder) leaveSleep(t *thread) {
	if t.sleepElem != nil {
		b.queueOf(t.pool).asleep.Remove(t.sleepElem)
		t.sleepElem = nil
	}
}

// sleepRank is the place of a thread among the sleeping threads of its pool when another pool's thread woke
// it. It may have waited for work or for a lock.
type sleepRank struct{ oldest, newest bool }

// wasIdle reports whether the thread had waited for work, if its pool is woken in that order.
func (r sleepRank) wasIdle(order simulate.WakeOrder) bool {
	return order == simulate.OldestFirst && r.oldest || order == simulate.NewestFirst && r.newest
}

// noteWakeup notes that another thread woke a thread. waker is nil for one outside of the container. timed
// says that a timer or a device woke it. noteWakeup returns true if the thread may have waited for work.
// Other pools bring work; a thread of the same pool releases a lock.
func (b *builder) noteWakeup(t, waker *thread, timed bool) bool {
	q := b.queueOf(t.pool)
	defer b.leaveSleep(t)
	if timed {
		q.timed++
		return false
	}
	if t.sleepElem == nil || waker != nil && waker.pool == t.pool {
		return false
	}
	rank := sleepRank{t.sleepElem == q.asleep.Front(), t.sleepElem == q.asleep.Back()}
	t.ranks = append(t.ranks, rank)
	if q.asleep.Len() > 1 {
		q.wakeups++
		q.woken[t]++
		q.chance += 1 / float64(q.asleep.Len())
		if rank.oldest {
			q.oldest++
		}
		if rank.newest {
			q.newest++
		}
	}
	return true
}

// markIdleSleeps leaves the Idle mark only on sleeps in which the thread waited for work: by its place in the order of
// its pool, or every sleep of an event loop. For each step it returns how many StepAwait come before it.
func (t *thread) markIdleSleeps(order simulate.WakeOrder, loop bool) (before []int) {
	before = make([]int, len(t.steps))
	n, awaits := 0, 0
	for i := range t.steps {
		s := &t.steps[i]
		before[i] = awaits
		waits := s.Kind == simulate.StepUntil || s.Kind == simulate.StepAwait
		switch {
		case loop:
			s.Idle = waits
		case s.Idle:
			s.Idle = t.ranks[n].wasIdle(order)
			n++
		}
		if s.Kind == simulate.StepAwait {
			awaits++
		}
	}
	return before
}

// joinPool puts a thread into a pool.
func (b *builder) joinPool(t *thread, p *Pool) {
	asleep := t.sleepElem != nil
	b.leaveSleep(t)
	if t.pool = p; asleep {
		b.enterSleep(t)
	}
}

func (b *builder) queueOf(p *Pool) *workQueue {
	q := b.queues[p]
	if q == nil {
		q = &workQueue{woken: map[*thread]int{}}
		b.queues[p] = q
	}
	return q
}

// wakeOrderOf returns the order in which a pool's shared queue wakes these threads. Threads that may run on
// different CPUs share none.
func (b *builder) wakeOrderOf(p *Pool, threads []*thread) simulate.WakeOrder {
	for _, t := range threads {
		if t.Allowed != threads[0].Allowed {
			return simulate.NotShared
		}
	}
	return b.queueOf(p).wakeOrder()
}
