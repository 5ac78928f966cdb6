package service

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/libs/go/budget"
)

// request is one on its way through the service. A connection's descriptor may belong
// to another connection by the time of the answer. The new peer then gets the answer
// to another client's request and drops it.
type request struct {
	conn int32
	Request
}

// server is the running service.
type server struct {
	spec        Spec
	pools       []*pool
	poolOf      []*pool // by class; nil: the reader itself
	readers     []*reader
	connections atomic.Int64
	shared      []uint64
	lock        mutex // of all requests
	world       world
	gc          *collector
	admission   admission
	budget      *budget.Budget // nil: no work is held back

	served, refused, unknown, lost atomic.Uint64
}

// pool is a set of threads with their queues.
type pool struct {
	spec   Pool
	queues []*queue
	turn   atomic.Uint32
}

func (p *pool) put(r request) bool {
	return p.queues[int(p.turn.Add(1))%len(p.queues)].put(r)
}

// newServer makes all that threads need; listen is where clients connect.
func newServer(spec Spec, listen int) (*server, error) {
	s := &server{spec: spec, admission: admission{of: spec.RateLimit.Admission(), began: time.Now()}, shared: make([]uint64, spec.Shared/8)}
	for _, p := range spec.Pools {
		made := &pool{spec: p}
		queues := 1
		if p.PerThread {
			queues = p.Threads
		}
		for range queues {
			made.queues = append(made.queues, newQueue(p.Queue/queues, p.Threads/queues))
		}
		s.pools = append(s.pools, made)
	}
	for _, c := range spec.Classes {
		var serves *pool
		for _, p := range s.pools {
			if p.spec.Name == c.Pool {
				serves = p
			}
		}
		s.poolOf = append(s.poolOf, serves)
	}
	for i := range spec.IO {
		if i > 0 {
			listen = -1
		}
		r, err := newReader(s, listen)
		if err != nil {
			return nil, err
		}
		s.readers = append(s.readers, r)
	}
	if spec.GC != nil {
		s.gc = &collector{world: &s.world, spec: *spec.GC}
	}
	return s, nil
}

// start starts all threads and returns when each of them runs. The library is started here, when the limit is in force.
func (s *server) start() {
	if s.spec.held() {
		s.budget = budget.Process()
	}
	var started sync.WaitGroup
	thread := func(name string, run func()) {
		started.Add(1)
		go func() {
			runtime.LockOSThread()
			workload.SetName(name)
			started.Done()
			run()
		}()
	}
	for _, p := range s.pools {
		for i := range p.spec.Threads {
			q := p.queues[i%len(p.queues)]
			thread(p.spec.Name+"-"+strconv.Itoa(i+1), func() { s.work(q) })
		}
	}
	if s.gc != nil {
		for i := range s.gc.spec.Threads {
			thread("gc-"+strconv.Itoa(i+1), s.gc.collect)
		}
		thread("vm", s.gc.decide)
	}
	for i, r := range s.readers {
		thread("io-"+strconv.Itoa(i+1), r.run)
	}
	started.Wait()
}

// begin lets collections by the clock come from now on.
func (s *server) begin() {
	if s.gc == nil || s.gc.spec.Every == 0 {
		return
	}
	// The ticks count from here, not from when a quota lets the goroutine run.
	due := time.Tick(s.gc.spec.Every)
	go func() {
		for range due {
			s.gc.ask()
		}
	}()
}

// handle gives a request to whom it belongs.
func (s *server) handle(r request) {
	if int(r.Class) >= len(s.poolOf) {
		s.unknown.Add(1)
		s.answer(r, Unknown)
		return
	}
	p := s.poolOf[r.Class]
	switch {
	case !s.admission.admits():
		s.refused.Add(1)
		s.answer(r, Refused)
	case p == nil:
		s.serve(r, 0)
	case !p.put(r):
		s.refused.Add(1)
		s.answer(r, Refused)
	}
}

// admission is the rate limit of all readers together.
type admission struct {
	mu    sync.Mutex
	of    scenario.Admission
	began time.Time
}

func (a *admission) admits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of.Admits(time.Since(a.began))
}

// work is the life of a pool's thread.
func (s *server) work(q *queue) {
	for {
		r, behind := q.take()
		permit := s.hold(r)
		s.world.enter()
		s.serve(r, behind)
		s.world.leave()
		permit.Release()
	}
}

// hold waits until the library lets a request's work start. Without the library the permit is none, and Release does nothing.
func (s *server) hold(r request) budget.Permit {
	if s.budget == nil || !s.spec.Classes[r.Class].Held {
		return budget.Permit{}
	}
	p, _ := s.budget.Acquire(context.Background(), budget.App) // fails only when the context ends
	return p
}

// serve does a request's work: it touches the shared data, works on its own,
// and works under the lock.
func (s *server) serve(r request, behind int) {
	class := &s.spec.Classes[r.Class]
	bits := mix(s.spec.Seed ^ mix(r.Number))
	d := draw(class.Work, bits)
	d = time.Duration(float64(d) * min(10, 1+s.spec.Inflate*float64(behind)))
	s.touch(class.Touches, bits)
	locked := time.Duration(class.Locked * float64(d))
	burn(d-locked, &s.world)
	if locked > 0 {
		// Who waits for the lock is at a safepoint, as in a JVM: its holder may be stopped at one.
		s.world.leave()
		s.lock.lock()
		s.world.enter()
		burn(locked, &s.world)
		s.lock.unlock()
	}
	n := s.served.Add(1) // before the answer, so that who has it finds it counted
	s.answer(r, Served)
	if s.gc != nil && s.gc.spec.Requests > 0 && n%uint64(s.gc.spec.Requests) == 0 {
		s.gc.ask()
	}
}

// line is a cache line's size in bytes.
const line = 64

// touch reads and writes that many cache lines of the shared data, spread by
// the request's bits. What it costs is what this host's caches make of it: a
// line that another CPU has written comes from there.
func (s *server) touch(n int, bits uint64) {
	lines := uint64(len(s.shared) / (line / 8))
	for range n {
		bits = mix(bits)
		atomic.AddUint64(&s.shared[bits%lines*(line/8)], 1)
	}
}
