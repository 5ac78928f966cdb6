package budget

import (
	"errors"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/pace"
)

// ErrLate is the error of [Budget.AcquireWithin] for a task that would start too late, or has waited so long.
var ErrLate = errors.New("budget: the task would start later than its objective; try again later, or elsewhere")

// overdueAfter is how many seconds a task may keep its permit for itself. After that it is taken for one that never returns.
const overdueAfter = 16

// queue is a class's permits and who waits for them, first come, first served.
type queue struct {
	class Class

	mu      sync.Mutex
	permits int // 0: as many as come
	running int
	// ages counts running tasks by the second in which they started or called Checkpoint last; overdue those of longer ago.
	ages    [overdueAfter]int
	overdue int
	second  uint32

	head, tail *waiter
	waiting    int
	timer      *time.Timer // asks again when pacing said
	armed      bool
	due        time.Duration // when it does so, if armed

	cost      pace.Mean
	between   pace.Mean     // from one task that waited to the next that starts
	lastGrant time.Duration // 0: nothing waited since

	started, finished, late, held uint64
	ran                           time.Duration // see wallTime
}

// waiter is a task that waits.
type waiter struct {
	ready      chan struct{}
	since      time.Duration
	prev, next *waiter
	granted    bool
	permit     Permit
}

// free reports whether a permit is. A task that is overdue has lost its own.
func (q *queue) free() bool { return q.permits == 0 || q.running-q.overdue < q.permits }

func (q *queue) start(now time.Duration) Permit {
	q.running++
	q.started++
	q.ran -= now
	q.ages[q.second%overdueAfter]++
	return Permit{class: q.class, held: true, since: now, second: q.second}
}

// wallTime is that of all tasks so far, also of those that still run. A program of years makes it wrap around; differences hold.
func (q *queue) wallTime(now time.Duration) time.Duration {
	return q.ran + time.Duration(q.running)*now
}

// forget takes a task out of the ages.
func (q *queue) forget(second uint32) {
	if q.second-second < overdueAfter {
		q.ages[second%overdueAfter]--
	} else {
		q.overdue--
	}
}

// tick begins a second. It returns how many tasks became overdue.
func (q *queue) tick() int {
	q.second++
	oldest := &q.ages[q.second%overdueAfter]
	n := *oldest
	q.overdue += n
	*oldest = 0
	return n
}

func (q *queue) push(w *waiter) {
	w.prev, w.next = q.tail, nil
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.waiting++
}

func (q *queue) pushFirst(w *waiter) {
	w.prev, w.next = nil, q.head
	if q.head == nil {
		q.tail = w
	} else {
		q.head.prev = w
	}
	q.head = w
	q.waiting++
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.waiting--
}

// expected is how long one more task would wait: the tasks before it, at the pace of the last ones. Without one before it
// nothing is expected, so that a class that rejected everything begins again by itself.
func (q *queue) expected() time.Duration { return time.Duration(q.waiting) * q.between.Value() }
