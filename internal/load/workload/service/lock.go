package service

import (
	"sync/atomic"

	"github.com/unthrottle/unthrottle/internal/load/workload/futex"
)

// mutex is a plain lock that does not spin: 0 free, 1 taken, 2 taken and a thread
// waits. Like most locks of real services it is held through whatever the scheduler
// does to its holder.
type mutex struct {
	word atomic.Uint32
	_    [60]byte // a cache line of its own
}

func (m *mutex) lock() {
	if m.word.CompareAndSwap(0, 1) {
		return
	}
	for m.word.Swap(2) != 0 {
		futex.Wait(&m.word, 2)
	}
}

func (m *mutex) unlock() {
	if m.word.Swap(0) == 2 {
		futex.Wake(&m.word, 1)
	}
}

// condition is for waiting until something under a mutex has changed.
type condition struct {
	sequence atomic.Uint32
	waiting  int // under the mutex
}

// wait lets go of m, sleeps until signalled, and takes m again; it may return
// early.
func (c *condition) wait(m *mutex) {
	now := c.sequence.Load()
	c.waiting++
	m.unlock()
	futex.Wait(&c.sequence, now)
	m.lock()
	c.waiting--
}

// signal wakes one; m must be held.
func (c *condition) signal() {
	c.sequence.Add(1)
	if c.waiting > 0 {
		futex.Wake(&c.sequence, 1)
	}
}
