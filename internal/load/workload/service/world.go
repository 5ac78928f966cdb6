package service

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/futex"
)

// world is what a stop-the-world collection stops: every thread that serves
// requests, at its next safepoint.
type world struct {
	stop    atomic.Uint32 // 1: all shall stop
	running atomic.Uint32 // threads between enter and leave
}

// enter lets a thread begin to serve, after a collection that is under way.
func (w *world) enter() {
	for {
		for w.stop.Load() == 1 {
			futex.Wait(&w.stop, 1)
		}
		w.running.Add(1)
		if w.stop.Load() == 0 {
			return
		}
		w.leave()
	}
}

func (w *world) leave() {
	if w.running.Add(^uint32(0)) == 0 && w.stop.Load() == 1 {
		futex.Wake(&w.running, futex.All)
	}
}

// safepoint stops the calling thread through a collection.
func (w *world) safepoint() {
	if w.stop.Load() == 1 {
		w.leave()
		w.enter()
	}
}

// halt returns when no thread serves.
func (w *world) halt() {
	w.stop.Store(1)
	for {
		n := w.running.Load()
		if n == 0 {
			return
		}
		futex.Wait(&w.running, n)
	}
}

func (w *world) resume() {
	w.stop.Store(0)
	futex.Wake(&w.stop, futex.All)
}

// collector is the garbage collector: one thread that decides, as a JVM's VM
// thread does, and several that collect, all at once.
type collector struct {
	world   *world
	spec    GC
	due     atomic.Uint32 // collections asked for
	round   atomic.Uint32 // collections begun
	left    atomic.Int64  // ns of work not yet taken
	at      atomic.Uint32 // collecting threads that are still at work
	stats   GCStats
	statsMu mutex
}

// part is how much work a collecting thread takes at a time.
const part = 100 * time.Microsecond

// ask asks for a collection; one that is asked for while another is due is the
// same.
func (c *collector) ask() {
	if c.due.CompareAndSwap(0, 1) {
		futex.Wake(&c.due, 1)
	}
}

// decide runs collections until the process ends.
func (c *collector) decide() {
	for {
		for c.due.Load() == 0 {
			futex.Wait(&c.due, 0)
		}
		began := workload.Now()
		c.world.halt()
		c.left.Store(int64(c.spec.Work))
		c.at.Store(uint32(c.spec.Threads))
		c.round.Add(1)
		futex.Wake(&c.round, futex.All)
		for n := c.at.Load(); n != 0; n = c.at.Load() {
			futex.Wait(&c.at, n)
		}
		c.due.Store(0)
		c.world.resume()
		c.note(workload.Now() - began)
	}
}

func (c *collector) note(pause time.Duration) {
	c.statsMu.lock()
	defer c.statsMu.unlock()
	c.stats.Collections++
	c.stats.PausedSeconds += pause.Seconds()
	c.stats.LongestMs = max(c.stats.LongestMs, float64(pause)/1e6)
	if len(c.stats.PausesMs) < maxPauses {
		c.stats.PausesMs = append(c.stats.PausesMs, float64(pause)/1e6)
	}
}

// collect is one collecting thread. Who finds no work left spins, yielding,
// until all are done, as parallel collectors do before they agree on the end.
func (c *collector) collect() {
	seen := uint32(0)
	for {
		for c.round.Load() == seen {
			futex.Wait(&c.round, seen)
		}
		seen++
		for c.left.Add(-int64(part)) > -int64(part) {
			burn(part, nil)
		}
		last := c.at.Add(^uint32(0)) == 0
		if last {
			futex.Wake(&c.at, futex.All)
		}
		// The next round may begin before a spinning thread has seen the end.
		for c.at.Load() != 0 && c.round.Load() == seen {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}
