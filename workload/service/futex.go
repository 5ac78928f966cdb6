package service

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What threads wait on is the kernel's futex, by raw system calls: the Go
// runtime is not told, so a waiting thread sleeps and a woken one runs as in any
// other language's service, with none of Go's scheduler between.

// Operations of futex(2); x/sys has no names for them.
const (
	futexPrivate = 128 // of this process alone

	futexWait = 0 | futexPrivate
	futexWake = 1 | futexPrivate
	all       = 1 << 30
)

// wait sleeps while *word is v; it may return early.
func wait(word *atomic.Uint32, v uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(v), 0, 0, 0)
}

// wake wakes up to n that sleep on word.
func wake(word *atomic.Uint32, n uintptr) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, n, 0, 0, 0)
}

// mutex is a plain lock that does not spin: 0 free, 1 taken, 2 taken and
// somebody waits. Like most locks of real services it is held through whatever
// the scheduler does to its holder.
type mutex struct {
	word atomic.Uint32
	_    [60]byte // a cache line of its own
}

func (m *mutex) lock() {
	if m.word.CompareAndSwap(0, 1) {
		return
	}
	for m.word.Swap(2) != 0 {
		wait(&m.word, 2)
	}
}

func (m *mutex) unlock() {
	if m.word.Swap(0) == 2 {
		wake(&m.word, 1)
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
	wait(&c.sequence, now)
	m.lock()
	c.waiting--
}

// signal wakes one; m must be held.
func (c *condition) signal() {
	c.sequence.Add(1)
	if c.waiting > 0 {
		wake(&c.sequence, 1)
	}
}
