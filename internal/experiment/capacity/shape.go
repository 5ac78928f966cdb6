package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Shape is a service and the requests to it.
type Shape struct {
	Name  string
	About string
	// Service as it comes, its pools sized by the host's CPUs; Sized with its pools
	// sized by the limit instead.
	Service, Sized service.Spec
	// Streams of one request per second in all; a plan's factor is then the load.
	Streams []loadgen.Stream
	// CPU that one request needs on average, collections included.
	CPU time.Duration
}

// Shapes are the names that NewShape knows.
func Shapes() []string { return []string{"pool", "pools", "gc", "mixed"} }

const ms = time.Millisecond

// sharedData is what the requests share: more than a CPU's own cache, less than
// a socket's.
const sharedData = 8 << 20

// pool of a service: queues are long enough that refusing is a sign of overload.
func pool(name string, threads int) service.Pool {
	return service.Pool{Name: name, Threads: threads, Queue: 1000}
}

// newShape makes a shape for a host of so many CPUs and a limit. As it comes,
// each pool has two threads per CPU of the host, the advice that seed 000 found
// everywhere.
func newShape(name string, cpus, limit int) (Shape, error) {
	made, ok := map[string]func(cpus, limit int) Shape{"pool": onePool, "pools": severalPools, "gc": collecting, "mixed": mixed}[name]
	if !ok {
		return Shape{}, fmt.Errorf("shape %.40q: choose from %s", name, strings.Join(Shapes(), ", "))
	}
	return made(cpus, limit), nil
}

// MostShare is where searches end, as a share of what [Carries] says of the CPUs granted: a remedy that carries it may carry more.
const MostShare = 1.2

// Carries is how many requests per second of a shape so many CPUs can do, the long ones included. Above it the long ones wait without end,
// which an objective on the short ones does not see.
func Carries(shape string, cpus int) (float64, error) {
	s, err := newShape(shape, cpus, cpus)
	if err != nil {
		return 0, err
	}
	return float64(cpus) / s.CPU.Seconds(), nil
}

// held is the service as it comes, on so many CPUs, with its long work in the library's class App: the requests that are not in the
// objective, or all where there are no others. Work on the I/O threads goes to a pool of its own for that.
func (s Shape) held(cpus int) service.Spec {
	const offloaded = "app-worker"
	spec := s.Service
	spec.Classes, spec.Pools = slices.Clone(spec.Classes), slices.Clone(spec.Pools)
	for _, stream := range s.Streams {
		if hasBackground(s.Streams) && !stream.Background {
			continue
		}
		c := &spec.Classes[stream.Class]
		if c.Held = true; c.Pool != "" {
			continue
		}
		if c.Pool = offloaded; !slices.ContainsFunc(spec.Pools, func(p service.Pool) bool { return p.Name == offloaded }) {
			spec.Pools = append(spec.Pools, pool(offloaded, 2*cpus))
		}
	}
	return spec
}

func onePool(cpus, limit int) Shape {
	s := Shape{Name: "pool", About: "interchangeable requests of 2 ms on average, one pool"}
	s.Streams = []loadgen.Stream{{Name: "get", PerSecond: 1}}
	get := service.Class{Name: "get", Pool: "http-worker",
		Work: scenario.Duration{Shape: scenario.Exponential, Mean: 2 * ms}, Touches: 200, Locked: 0.02}
	s.Service = service.Spec{IO: 2, Shared: sharedData, Classes: []service.Class{get}, Pools: []service.Pool{pool("http-worker", 2*cpus)}}
	s.Sized = s.Service
	s.Sized.IO, s.Sized.Pools = 1, []service.Pool{pool("http-worker", limit)}
	s.CPU = 2 * ms
	return s
}

func severalPools(cpus, limit int) Shape {
	s := onePool(cpus, limit)
	s.Name, s.About = "pools", "short requests in one pool beside bursts of 10 ms jobs in another, half of the CPU "+
		"each; the objective is on the short ones"
	const jobs = 8 // at once
	s.Streams = []loadgen.Stream{
		{Name: "get", PerSecond: 10. / 11},
		{Name: "job", Class: 1, PerSecond: 1. / 11, Burst: jobs, Background: true},
	}
	get := service.Class{Name: "get", Pool: "http-worker",
		Work: scenario.Duration{Shape: scenario.Exponential, Mean: ms}, Touches: 100, Locked: 0.02}
	job := service.Class{Name: "job", Pool: "job-worker", Work: scenario.Duration{Shape: scenario.Uniform, Low: 8 * ms,
		High: 12 * ms}, Touches: 1000}
	s.Service.Classes = []service.Class{get, job}
	s.Service.Pools = []service.Pool{pool("http-worker", 2*cpus), pool("job-worker", 4*cpus)}
	s.Sized = s.Service
	s.Sized.IO, s.Sized.Pools = 1, []service.Pool{pool("http-worker", limit), pool("job-worker", limit)}
	s.CPU = 20 * ms / 11
	return s
}

func collecting(cpus, limit int) Shape {
	s := onePool(cpus, limit)
	s.Name, s.About = "gc", "interchangeable requests in one pool, and after every 500 of them a stop-the-world "+
		"collection of 40 ms of CPU, by two threads per CPU of the host"
	return s.collected(cpus, limit)
}

// collected is the shape with a collector.
func (s Shape) collected(cpus, limit int) Shape {
	const every, work = 500, 40 * ms
	s.Service.GC = &service.GC{Threads: 2 * cpus, Work: work, Requests: every}
	s.Sized.GC = &service.GC{Threads: limit, Work: work, Requests: every}
	s.CPU += work / every
	return s
}

func mixed(cpus, limit int) Shape {
	s := Shape{Name: "mixed", About: "pings and bursts of 20 ms requests, both on the I/O threads; sized: the long " +
		"ones offloaded to a pool; the objective is on the pings"}
	const works = 6 // at once, as in the measured Netty table
	s.Streams = []loadgen.Stream{
		{Name: "ping", PerSecond: 20. / 21},
		{Name: "work", Class: 1, PerSecond: 1. / 21, Burst: works, Background: true},
	}
	ping := service.Class{Name: "ping", Work: scenario.Duration{Shape: scenario.Exponential, Mean: 200 * time.Microsecond}, Touches: 20}
	work := service.Class{Name: "work", Work: scenario.Fixed(20 * ms), Touches: 1000}
	s.Service = service.Spec{IO: 2 * cpus, Shared: sharedData, Classes: []service.Class{ping, work}}
	s.Sized = s.Service
	work.Pool = "app-worker"
	s.Sized.IO, s.Sized.Classes, s.Sized.Pools = limit, []service.Class{ping, work}, []service.Pool{pool("app-worker", limit)}
	s.CPU = 24 * ms / 21
	return s
}

// foreground adds up the streams that the objective is on.
func foreground(streams []loadgen.Stream, phase loadgen.PhaseResult) loadgen.StreamResult {
	var sum loadgen.StreamResult
	for i, r := range phase.Streams {
		if streams[i].Background {
			continue
		}
		sum.Intended += r.Intended
		sum.Answered += r.Answered
		sum.Failed += r.Failed
		sum.Unfinished += r.Unfinished
		sum.Unsent += r.Unsent
		sum.Tries += r.Tries
		sum.Refused += r.Refused
		sum.TimedOut += r.TimedOut
		sum.Latency.Merge(r.Latency)
	}
	return sum
}

// hasBackground tells whether some requests are not in the objective.
func hasBackground(streams []loadgen.Stream) bool {
	return slices.ContainsFunc(streams, func(s loadgen.Stream) bool { return s.Background })
}
