package scenario

import "time"

// Bounds of a service.
const (
	maxPools     = 64
	maxClasses   = 64
	maxQueue     = 1_000_000
	maxShared    = 256 << 20
	maxTouches   = 1 << 20
	maxRetries   = 100
	maxBurst     = 10_000 // requests at once
	maxPerSecond = 1e6    // requests
	maxPhases    = 32
	maxArrivals  = 10_000 // with given times

	maxPoolName = 15 // a thread's name has 15 bytes in the kernel
)

// Server describes a service, and how its clients use it.
type Server struct {
	// IO is the number of threads that read requests. They also serve classes without a pool.
	IO    int
	Pools []Pool
	// Classes of requests, at least one.
	Classes []Class
	// Shared is the size of the data that all requests share, in bytes.
	Shared int
	// Inflate is the share of its work by which a request grows for each request that waits behind it, at
	// most tenfold; 0 to 1.
	Inflate float64
	// Timeout of one try of a client; 0: a client waits for ever.
	Timeout time.Duration
	Retries Retries
	// RateLimit of the service, or of each of its shards.
	RateLimit RateLimit
}

// Pool is a set of threads with a bounded queue. It refuses requests while the queue is full.
type Pool struct {
	Name    string
	Threads int
	Queue   int
	// PerThread gives each thread a part of the queue for itself, filled in turn.
	PerThread bool
}

// Class is a kind of requests.
type Class struct {
	Name string
	// Pool is an index in Server.Pools; -1: the I/O thread that has read the request.
	Pool     int
	Work     Duration // CPU time of a request
	Arrivals Arrivals
	// Touches is how many cache lines of the shared data a request reads and writes.
	Touches int
	// Locked is the share of its work that a request does under the one lock of the service, 0 to 1.
	Locked float64
}

// Arrivals are open-loop: they come whether or not earlier requests are done.
type Arrivals struct {
	PerSecond float64         // of requests; 0: At
	At        []time.Duration // from the workload's start on, in order
	// Burst is how many come at once, PerSecond/Burst times a second; 1 or more.
	Burst int
	// Regular gives equal gaps; else the arrivals are Poisson.
	Regular bool
}

// Retries of a client whose try failed.
type Retries struct {
	Max int
	// Budget is how many retries each request earns, for all requests together; 0: only Max bounds them.
	Budget  float64
	Backoff time.Duration
}

// Phase is a time in which Factor multiplies a workload's load. The last phase of a workload lasts to the
// scenario's end.
type Phase struct {
	For    time.Duration
	Factor float64 // 0: no load
}

// Collector is a stop-the-world garbage collector of a service.
type Collector struct {
	Service int           // index in Scenario.Workloads
	Work    time.Duration // CPU time of a collection, of all its threads together
	// Requests between two collections; 0: Every.
	Requests int
	Every    time.Duration
}

// Java is a real JVM that allocates.
type Java struct {
	Heap, Live int           // bytes: the most of the heap, and the live part of it
	Run        time.Duration // CPU time between two sleeps of its one application thread
}

// Simple returns the one pool and the one class of a service with nothing else: one I/O thread, no shared
// data, clients that wait for ever, Poisson arrivals or times. false: the service has more.
func (s *Server) Simple() (Pool, Class, bool) {
	if len(s.Pools) != 1 || len(s.Classes) != 1 {
		return Pool{}, Class{}, false
	}
	p, c := s.Pools[0], s.Classes[0]
	plain := s.IO == 1 && s.Shared == 0 && s.Inflate == 0 && s.Timeout == 0 && s.Retries == Retries{}
	return p, c, plain && !p.PerThread && c.Pool == 0 && c.Touches == 0 && c.Locked == 0 && c.Arrivals.Burst == 1 && !c.Arrivals.Regular
}

// poolThreads is the number of threads of all pools.
func (s *Server) poolThreads() int {
	n := 0
	for _, p := range s.Pools {
		n += p.Threads
	}
	return n
}
