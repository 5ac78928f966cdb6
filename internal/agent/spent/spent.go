// Package spent tells what the agent's CPU time goes to, as an operator would ask.
package spent

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/see/probe"
)

// Part of the agent whose CPU time is told apart.
type Part int

// The parts.
const (
	Naming    Part = iota // the list of containers and their names
	Sampling              // counters of containers, and what they add up to
	Probe                 // the probe's counts of containers
	Periods               // period rows, and their files
	Recording             // recordings that the agent makes by itself
	Pricing               // the least CPUs of each remedy, from recordings
	Metrics               // answers to /metrics
	Acting                // rules, and what is in force
	Memory                // giving memory back
	parts
)

// String is the label of its metric.
func (p Part) String() string {
	return [...]string{"naming", "sampling", "probe", "periods", "recording", "pricing", "metrics", "acting", "memory"}[p]
}

// elsewhere names what is left of the process's CPU time: Go's collector, its scheduler with timers and idle threads,
// and the start. Go's own estimate of its collector goes by the wall clock: on a busy host it is several times too much.
const elsewhere = "runtime"

// CPU adds up the CPU time of each part. Its zero value is ready.
type CPU struct {
	mu      sync.Mutex
	parts   [parts]time.Duration
	elapsed map[string]float64 // seconds as exported last
	// inside is what a round spends on other parts than sampling; of the watching goroutine alone.
	inside struct {
		naming  time.Duration // CPU time
		reading time.Duration // wall time: the CPU clock would cost as much as a read
	}
}

// Do runs work and adds its CPU time, measured by the thread's clock, to a part.
func (s *CPU) Do(p Part, work func()) { s.add(p, onThread(work)) }

// onThread returns the CPU time of work. The goroutine keeps its thread meanwhile.
func onThread(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := Clock(unix.CLOCK_THREAD_CPUTIME_ID)
	work()
	return Clock(unix.CLOCK_THREAD_CPUTIME_ID) - before
}

// Of is the CPU time of a part.
func (s *CPU) Of(p Part) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[p]
}

func (s *CPU) add(p Part, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[p] += d
}

// Step runs a step of the watcher. It tells the lists and the probe's reads from the rest of it; the reads by their share
// of the wall time.
func (s *CPU) Step(work func()) {
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
	s.parts[Naming] += s.inside.naming
	s.parts[Probe] += reading
	s.parts[Sampling] += used - reading
}

// Listing measures what a list of containers costs.
func (s *CPU) Listing(list func() ([]container.Container, error)) func() ([]container.Container, error) {
	return func() (containers []container.Container, err error) {
		s.inside.naming += onThread(func() { containers, err = list() })
		return containers, err
	}
}

// Reading adds the wall time of a read of the probe, within Step.
func (s *CPU) Reading(wall time.Duration) { s.inside.reading += wall }

// Collecting measures a collector: the registry runs its Collect in a goroutine of its own.
func (s *CPU) Collecting(c prometheus.Collector) prometheus.Collector { return collecting{c, s} }

type collecting struct {
	prometheus.Collector
	spent *CPU
}

// Collect implements prometheus.Collector.
func (m collecting) Collect(ch chan<- prometheus.Metric) {
	m.spent.Do(Metrics, func() { m.Collector.Collect(ch) })
}

// Handler measures what answers over HTTP.
func (s *CPU) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Do(Metrics, func() { h.ServeHTTP(w, r) })
	})
}

// ProbeWork gives the probe's own work, which runs in its goroutines, to the parts of the agent that it is done for.
func (s *CPU) ProbeWork(w probe.Work, work func()) {
	p := Periods
	if w == probe.WorkRecording {
		p = Recording
	}
	s.Do(p, work)
}

// Clock reads a CPU clock, such as unix.CLOCK_THREAD_CPUTIME_ID of this thread.
func Clock(clock int32) time.Duration {
	var t unix.Timespec
	// It cannot fail: the clocks of one's own thread and process exist on all kernels.
	_ = unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano())
}

// Seconds returns the CPU time since the start by part. None ever falls; together they are the process's.
func (s *CPU) Seconds() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := Clock(unix.CLOCK_PROCESS_CPUTIME_ID).Seconds()
	now := map[string]float64{}
	for p, d := range s.parts {
		now[Part(p).String()] = d.Seconds()
		left -= d.Seconds()
	}
	now[elsewhere] = left
	for name, was := range s.elapsed {
		now[name] = max(now[name], was)
	}
	s.elapsed = now
	return now
}

var desc = prometheus.NewDesc("unthrottle_agent_cpu_seconds_total",
	"CPU time of the agent's process since its start, by part.", []string{"part"}, nil)

// Describe implements prometheus.Collector.
func (s *CPU) Describe(ch chan<- *prometheus.Desc) { ch <- desc }

// Collect implements prometheus.Collector.
func (s *CPU) Collect(ch chan<- prometheus.Metric) {
	for name, seconds := range s.Seconds() {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, seconds, name)
	}
}
