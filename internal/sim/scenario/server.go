package scenario

import "time"

// Bounds of a service.
const (
	MaxPools    = 64
	MaxClasses  = 64
	MaxQueue    = 1_000_000
	MaxShared   = 256 << 20
	MaxTouches  = 1 << 20
	MaxRetries  = 100
	MaxBurst    = 10_000 // requests at once
	MaxPhases   = 32
	MaxArrivals = 10_000 // given as times

	maxPoolName = 15 // a thread's name has 15 bytes in the kernel
)

// Server is what a service is made of, and how its clients use it.
type Server struct {
	// IO threads read requests; they serve those of classes without a pool.
	IO    int
	Pools []Pool
	// Classes of requests, at least one.
	Classes []Class
	// Shared is the size of the data that all requests share, in bytes.
	Shared int
	// Inflate is by what share of itself a request's work grows for each request
	// that waits behind it, at most tenfold; 0 to 1.
	Inflate float64
	// Timeout of one try of a client; 0: a client waits for ever.
	Timeout time.Duration
	Retries Retries
}

// Pool is a set of threads with a bounded queue. What finds it full is refused.
type Pool struct {
	Name    string
	Threads int
	Queue   int
	// PerThread: each thread has a part of the queue for itself, filled in turn.
	PerThread bool
}

// Class is a kind of requests.
type Class struct {
	Name string
	// Pool is an index in Server.Pools; -1: the I/O thread that has read it.
	Pool     int
	Work     Duration // CPU time of a request
	Arrivals Arrivals
	// Touches is how many cache lines of the shared data a request reads and writes.
	Touches int
	// Locked is the share of its work that a request does under the one lock of
	// the service, 0 to 1.
	Locked float64
}

// Arrivals are open-loop: they come whether or not earlier requests are done.
type Arrivals struct {
	PerSecond float64         // of requests; 0: At
	At        []time.Duration // from the workload's start on, in order
	// Burst is how many come at once, PerSecond/Burst times a second; 1 or more.
	Burst int
	// Regular: equal gaps; else Poisson.
	Regular bool
}

// Retries of a client whose try failed.
type Retries struct {
	Max int
	// Budget is how many retries each request earns, for all together; 0: no bound
	// but Max.
	Budget  float64
	Backoff time.Duration
}

// Phase is a time in which a workload's load is multiplied. The last phase of a
// workload lasts to the scenario's end.
type Phase struct {
	For    time.Duration
	Factor float64 // 0: nothing comes
}

// Collector is a stop-the-world garbage collector of a service.
type Collector struct {
	Service int           // index in Scenario.Workloads
	Work    time.Duration // CPU time of a collection, by all its threads together
	// Requests between two collections; 0: Every.
	Requests int
	Every    time.Duration
}

// Java is a real JVM that allocates.
type Java struct {
	Heap, Live int           // bytes: the most of the heap, and what stays alive in it
	Run        time.Duration // CPU time between two sleeps of its one application thread
}

// Simple gives the one pool and the one class of a service that has nothing
// else: one I/O thread, no shared data, clients that wait for ever, Poisson
// arrivals or times. false: it has more.
func (s *Server) Simple() (Pool, Class, bool) {
	if len(s.Pools) != 1 || len(s.Classes) != 1 {
		return Pool{}, Class{}, false
	}
	p, c := s.Pools[0], s.Classes[0]
	plain := s.IO == 1 && s.Shared == 0 && s.Inflate == 0 && s.Timeout == 0 && s.Retries == Retries{}
	return p, c, plain && !p.PerThread && c.Pool == 0 && c.Touches == 0 && c.Locked == 0 && c.Arrivals.Burst == 1 && !c.Arrivals.Regular
}

// Threads of all pools.
func (s *Server) Threads() int {
	n := 0
	for _, p := range s.Pools {
		n += p.Threads
	}
	return n
}
