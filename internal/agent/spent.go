package agent

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
)

// part of the agent whose CPU time is told apart.
type part int

const (
	partNaming    part = iota // the list of containers and their names
	partSampling              // counters of containers, and what they add up to
	partProbe                 // the probe's counts of containers
	partPeriods               // period rows, and their files
	partRecording             // recordings that the agent makes by itself
	partPricing               // the least CPUs of each remedy, from recordings
	partMetrics               // answers to /metrics
	partActing                // rules, and what is in force
	partMemory                // giving memory back
	parts
)

func (p part) String() string {
	return [...]string{"naming", "sampling", "probe", "periods", "recording", "pricing", "metrics", "acting", "memory"}[p]
}

// spentElsewhere names what is left of the process's CPU time: Go's collector, its scheduler with timers and idle threads,
// and the start. Go's own estimate of its collector goes by the wall clock: on a busy host it is several times too much.
const spentElsewhere = "runtime"

// spent adds up the CPU time of each part.
type spent struct {
	mu      sync.Mutex
	parts   [parts]time.Duration
	elapsed map[string]float64 // seconds as exported last
	// inside is what a round spends on other parts than sampling; of the watching goroutine alone.
	inside struct {
		naming  time.Duration // CPU time
		reading time.Duration // wall time: the CPU clock would cost as much as a read
	}
}

// do runs work and adds its CPU time, measured by the thread's clock, to a part.
func (s *spent) do(p part, work func()) { s.add(p, onThread(work)) }

// onThread returns the CPU time of work. The goroutine keeps its thread meanwhile.
func onThread(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	work()
	return cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - before
}

// of is the CPU time of a part.
func (s *spent) of(p part) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[p]
}

func (s *spent) add(p part, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p] += d
}

// step runs a step of the watcher. It tells the lists and the probe's reads from the rest of it; the reads by their share
// of the wall time.
func (s *spent) step(work func()) {
	s.inside.naming, s.inside.reading = 0, 0
	begin := time.Now()
	used := onThread(work)
	wall := time.Since(begin)
	used = max(0, used-s.inside.naming)
	reading := time.Duration(0)
	if wall > 0 {
		reading = min(used, time.Duration(float64(used)*s.inside.reading.Seconds()/wall.Seconds()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[partNaming] += s.inside.naming
	s.parts[partProbe] += reading
	s.parts[partSampling] += used - reading
}

// listing measures what a list of containers costs.
func (s *spent) listing(list func() ([]container.Container, error)) func() ([]container.Container, error) {
	return func() (containers []container.Container, err error) {
		s.inside.naming += onThread(func() { containers, err = list() })
		return containers, err
	}
}

// measuredProbe measures what the watcher's reads cost.
type measuredProbe struct {
	Probe
	spent *spent
}

func (m measuredProbe) ReadInto(id uint64, into *counts.Counts) error {
	begin := time.Now()
	defer func() { m.spent.inside.reading += time.Since(begin) }()
	return m.Probe.ReadInto(id, into)
}

// measured is a collector whose Collect is measured: the registry runs it in a goroutine of its own.
type measured struct {
	prometheus.Collector
	spent *spent
}

func (m measured) Collect(ch chan<- prometheus.Metric) {
	m.spent.do(partMetrics, func() { m.Collector.Collect(ch) })
}

func (s *spent) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.do(partMetrics, func() { h.ServeHTTP(w, r) })
	})
}

// probeWork gives the probe's own work, which runs in its goroutines, to the parts of the agent that it is done for.
func (s *spent) probeWork(w probe.Work, work func()) {
	p := partPeriods
	if w == probe.WorkRecording {
		p = partRecording
	}
	s.do(p, work)
}

// cpuTime reads a CPU clock.
func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	// It cannot fail: the clocks of one's own thread and process exist on all kernels.
	_ = unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano())
}

// seconds returns the CPU time since the start by part. None ever falls; together they are the process's.
func (s *spent) seconds() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID).Seconds()
	now := map[string]float64{}
	for p, d := range s.parts {
		now[part(p).String()] = d.Seconds()
		left -= d.Seconds()
	}
	now[spentElsewhere] = left
	for name, was := range s.elapsed {
		now[name] = max(now[name], was)
	}
	s.elapsed = now
	return now
}

var spentDesc = prometheus.NewDesc("unthrottle_agent_cpu_seconds_total",
	"CPU time of the agent's process since its start, by part.", []string{"part"}, nil)

// Describe implements prometheus.Collector.
func (s *spent) Describe(ch chan<- *prometheus.Desc) { ch <- spentDesc }

// Collect implements prometheus.Collector.
func (s *spent) Collect(ch chan<- prometheus.Metric) {
	for name, seconds := range s.seconds() {
		ch <- prometheus.MustNewConstMetric(spentDesc, prometheus.CounterValue, seconds, name)
	}
}
