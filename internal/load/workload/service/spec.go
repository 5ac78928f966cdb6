package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Bounds of a [Spec].
const (
	maxThreads     = 4096 // of all pools together
	maxQueue       = 1 << 20
	maxClasses     = 64
	maxPools       = 64
	maxShared      = 256 << 20
	maxTouches     = 1 << 20
	maxConnections = 1024
	maxWork        = time.Hour
)

// Spec is a service.
type Spec struct {
	// Seed of the requests' work: a request with the same number is the same work
	// in every run.
	Seed uint64
	// IO is how many threads read requests, 1 or more.
	IO      int
	Pools   []Pool
	Classes []Class
	// Shared is the size of the data that all requests share, in bytes.
	Shared int
	// Inflate is the share by which a request's work grows for each request that
	// waits behind it, at most tenfold. It stands for colder caches, longer lists and
	// a fuller heap. 0: no growth.
	Inflate float64
	// RateLimit refuses requests beyond it.
	RateLimit scenario.RateLimit
	// GC, if any, stops the world.
	GC *GC
	// Deadline: the process ends this long after its start.
	Deadline time.Duration
}

// Pool is a set of equal threads that serve requests from a queue.
type Pool struct {
	Name    string // of the threads: Name-1 and so on, up to 15 bytes
	Threads int
	// Queue is how many requests may wait beyond those that idle threads take; more
	// are refused at once.
	Queue int
	// PerThread gives each thread a queue of its own, filled in turn, as event
	// loops have; false: one queue that all take from.
	PerThread bool
}

// Class is a kind of request.
type Class struct {
	Name string
	// Pool serves it; "": the I/O thread that has read it.
	Pool string
	Work scenario.Duration // CPU time
	// Touches is how many cache lines of the shared data it reads and writes.
	Touches int
	// Locked is the share of Work under the lock that all requests share, 0 to 1.
	Locked float64
	// Held: its work waits for a permit of class App of the project's library (libs/go/budget), which holds it back in time. It needs a
	// pool, since a reader that waits reads nothing.
	Held bool
}

// held reports whether some work is within the library's budget.
func (s Spec) held() bool {
	return slices.ContainsFunc(s.Classes, func(c Class) bool { return c.Held })
}

// GC is a stop-the-world collector.
type GC struct {
	Threads int
	Work    time.Duration // CPU time of a collection, by all its threads together
	// Requests between two collections: requests allocate. 0: Every, from [Process.Begin] on.
	Requests int
	Every    time.Duration
}

// Check returns the first mistake in a spec; nil: it has none.
func (s Spec) Check() error {
	switch {
	case s.IO < 1:
		return fmt.Errorf("io %d: without an I/O thread no request is read", s.IO)
	case s.threads() > maxThreads:
		return fmt.Errorf("%d threads: %d are allowed", s.threads(), maxThreads)
	case len(s.Pools) > maxPools:
		return fmt.Errorf("%d pools: %d are allowed", len(s.Pools), maxPools)
	case len(s.Classes) < 1 || len(s.Classes) > maxClasses:
		return fmt.Errorf("%d classes of requests: give 1 to %d", len(s.Classes), maxClasses)
	case s.Shared < 0 || s.Shared > maxShared:
		return fmt.Errorf("shared %d bytes: outside 0 to %d", s.Shared, maxShared)
	case !(s.Inflate >= 0 && s.Inflate <= 1):
		return fmt.Errorf("inflate %g: outside 0 to 1", s.Inflate)
	case !(s.RateLimit.PerSecond >= 0) || s.RateLimit.PerSecond > 0 && s.RateLimit.Burst < 1:
		return fmt.Errorf("rate limit %g per second, %d at once: give 0 for none, or a rate and 1 or more",
			s.RateLimit.PerSecond, s.RateLimit.Burst)
	case s.Deadline <= 0 || s.Deadline > child.MaxDeadline:
		return fmt.Errorf("deadline %v: outside 0 to %v", s.Deadline, child.MaxDeadline)
	}
	pools := map[string]bool{}
	for _, p := range s.Pools {
		if err := p.check(); err != nil {
			return err
		}
		if pools[p.Name] {
			return fmt.Errorf("pool %q: is there twice", p.Name)
		}
		pools[p.Name] = true
	}
	for _, c := range s.Classes {
		if err := c.check(pools, s.Shared); err != nil {
			return fmt.Errorf("class %q: %w", c.Name, err)
		}
	}
	return s.GC.check()
}

// threads is how many threads serve or collect.
func (s Spec) threads() int {
	n := s.IO
	for _, p := range s.Pools {
		n += p.Threads
	}
	if s.GC != nil {
		n += s.GC.Threads + 1
	}
	return n
}

func (p Pool) check() error {
	switch {
	case p.Name == "" || len(p.Name) > 15:
		return fmt.Errorf("pool %.30q: a name has 1 to 15 bytes", p.Name)
	case p.Threads < 1:
		return fmt.Errorf("pool %q: %d threads: a pool without threads serves nothing", p.Name, p.Threads)
	case p.Queue < 0 || p.Queue > maxQueue:
		return fmt.Errorf("pool %q: queue %d: outside 0 to %d", p.Name, p.Queue, maxQueue)
	case p.PerThread && p.Queue < p.Threads:
		return fmt.Errorf("pool %q: queue %d: less than one for each of %d threads", p.Name, p.Queue, p.Threads)
	}
	return nil
}

func (c Class) check(pools map[string]bool, shared int) error {
	d := c.Work
	switch {
	case c.Pool != "" && !pools[c.Pool]:
		return fmt.Errorf("there is no pool %q", c.Pool)
	case min(d.Mean, d.Low, d.High) < 0 || max(d.Mean, d.Low, d.High) > maxWork || d.High < d.Low:
		return fmt.Errorf("work %+v: outside 0 to %v", d, maxWork)
	case d.Mean == 0 && d.High == 0:
		return fmt.Errorf("no work")
	case c.Touches < 0 || c.Touches > maxTouches:
		return fmt.Errorf("touches %d: outside 0 to %d", c.Touches, maxTouches)
	case c.Touches > 0 && shared < line:
		return fmt.Errorf("touches %d cache lines of shared data, and there is none", c.Touches)
	case c.Held && c.Pool == "":
		return fmt.Errorf("held: it needs a pool, since an I/O thread that waits reads nothing")
	case !(c.Locked >= 0 && c.Locked <= 1):
		return fmt.Errorf("locked %g: a share is from 0 to 1", c.Locked)
	}
	return nil
}

func (g *GC) check() error {
	switch {
	case g == nil:
		return nil
	case g.Threads < 1:
		return fmt.Errorf("gc: %d threads collect nothing", g.Threads)
	case g.Work <= 0 || g.Work > maxWork:
		return fmt.Errorf("gc: work %v: outside 0 to %v", g.Work, maxWork)
	case (g.Requests > 0) == (g.Every > 0) || g.Requests < 0 || g.Every < 0:
		return fmt.Errorf("gc: give either requests or every: how often it collects")
	}
	return nil
}
