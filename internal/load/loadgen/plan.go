package loadgen

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/topology"
)

// Bounds of a [Plan].
const (
	MaxConnections = 64
	maxInFlight    = 100_000
	maxDuration    = time.Hour // of a phase, or any other time
	maxLatency     = 10 * time.Minute
	maxStreams     = 64
	maxPhases      = 64
	maxRate        = 1e6 // requests per second, of all streams together
	maxAt          = 100_000
	maxTries       = 100

	// maxLife bounds the life of a generator, from its start to the end of the drain.
	maxLife = child.MaxDeadline - 10*time.Minute
)

// Plan is what a generator sends, and where.
type Plan struct {
	// Addr of a [service.Process], Shards of several, or URL of any HTTP service; one
	// of the three.
	Addr   string
	Shards *Shards
	URL    string
	Seed   uint64
	// Streams of requests, side by side.
	Streams []Stream
	// Phases one after the other.
	Phases []Phase
	// Timeout of one try; 0: a try waits for ever. HTTP tries without one have 30 s.
	Timeout time.Duration
	Retries Retries
	// Connections that share the requests, of each shard; 0: 8.
	Connections int
	// Drain is how long answers are waited for after the last phase; 0: 1 s. A
	// request that is still on its way then counts as unfinished, with the time it
	// has had.
	Drain time.Duration
	// Good is the latency up to which the timeline counts an answer as good; 0: all.
	Good time.Duration
	// LateAfter is from when on a sending counts as late: what the generator adds
	// to a latency at most without being its bottleneck. 0: 1 ms.
	LateAfter time.Duration
	// CPUs that the generator may use, as the kernel writes them; "": all.
	CPUs string
	// Start on CLOCK_MONOTONIC, so that several generators start together; 0: at
	// once.
	Start time.Duration
}

// Stream is requests of one class.
type Stream struct {
	Name      string
	Class     uint8   // of the service; of no meaning with a URL
	PerSecond float64 // requests; 0: At
	// Burst is how many requests come at once; 0 and 1: one. PerSecond counts
	// requests, so bursts come PerSecond/Burst times a second.
	Burst int
	// Regular: the gaps are equal; false: exponential, which makes the arrivals
	// Poisson.
	Regular bool
	// At gives the times themselves, from the first phase's start on, in order.
	At []time.Duration
	// Background requests are measured like the others, but no objective covers them.
	Background bool
}

// Phase is a time in which the rates do not change.
type Phase struct {
	For time.Duration
	// Factor multiplies the rate of every stream that has one. 0: nothing comes.
	Factor float64
	// Measured phases get figures; others are for warming up.
	Measured bool
}

// Retries of requests without a good answer.
type Retries struct {
	Max int // tries after the first
	// Budget is how many retries each request earns, for all together; 0: no bound
	// but Max.
	Budget float64
	// Backoff is the wait before a retry, drawn from 0.5 to 1.5 of it.
	Backoff time.Duration
}

// Duration of all phases.
func (p Plan) Duration() time.Duration {
	var sum time.Duration
	for _, phase := range p.Phases {
		sum += phase.For
	}
	return sum
}

// filled is the plan with its defaults.
func (p Plan) filled() Plan {
	if p.Connections == 0 {
		p.Connections = 8
	}
	if p.Drain == 0 {
		p.Drain = time.Second
	}
	if p.LateAfter == 0 {
		p.LateAfter = time.Millisecond
	}
	return p
}

// Check returns the first mistake in a plan; nil: it has none.
func (p Plan) Check() error {
	if count(p.Addr != "", p.Shards != nil, p.URL != "") != 1 {
		return errors.New("give either an address, or shards, or a URL")
	}
	if err := p.Shards.check(p.Connections); err != nil {
		return err
	}
	if err := p.checkURL(); err != nil {
		return err
	}
	return p.CheckLoad()
}

// CheckLoad is Check for a plan that has no target yet.
func (p Plan) CheckLoad() error {
	switch {
	case len(p.Streams) < 1 || len(p.Streams) > maxStreams:
		return fmt.Errorf("%d streams: give 1 to %d", len(p.Streams), maxStreams)
	case len(p.Phases) < 1 || len(p.Phases) > maxPhases:
		return fmt.Errorf("%d phases: give 1 to %d", len(p.Phases), maxPhases)
	case p.Connections < 0 || p.Connections > MaxConnections:
		return fmt.Errorf("%d connections: outside 0 to %d", p.Connections, MaxConnections)
	case p.Retries.Max < 0 || p.Retries.Max > maxTries:
		return fmt.Errorf("%d retries: outside 0 to %d", p.Retries.Max, maxTries)
	case !(p.Retries.Budget >= 0 && p.Retries.Budget <= maxTries):
		return fmt.Errorf("retry budget %g: outside 0 to %d", p.Retries.Budget, maxTries)
	}
	for name, d := range map[string]time.Duration{
		"timeout": p.Timeout, "drain": p.Drain, "good": p.Good, "backoff": p.Retries.Backoff, "start": p.Start, "late after": p.LateAfter,
	} {
		if d < 0 || d > maxDuration && name != "start" {
			return fmt.Errorf("%s %v: outside 0 to %v", name, d, maxDuration)
		}
	}
	if p.CPUs != "" {
		if _, err := topology.ParseList(p.CPUs); err != nil {
			return fmt.Errorf("CPUs %.60q: %w", p.CPUs, err)
		}
	}
	return p.checkLoad()
}

func (p Plan) checkURL() error {
	if p.URL == "" {
		return nil
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("URL %.100q: give one such as http://127.0.0.1:8080/path", p.URL)
	}
	return nil
}

func (p Plan) checkLoad() error {
	highest := 0.0
	for i, phase := range p.Phases {
		if phase.For <= 0 || phase.For > maxDuration {
			return fmt.Errorf("phase %d: %v: outside 0 to %v", i+1, phase.For, maxDuration)
		}
		if !(phase.Factor >= 0 && phase.Factor <= maxRate) {
			return fmt.Errorf("phase %d: factor %g: outside 0 to %g", i+1, phase.Factor, maxRate)
		}
		highest = max(highest, phase.Factor)
	}
	if d := p.Duration() + p.Drain; d > maxLife {
		return fmt.Errorf("it would take %v: %v are allowed", d, maxLife)
	}
	sum := 0.0
	for _, s := range p.Streams {
		if err := s.check(); err != nil {
			return fmt.Errorf("stream %.40q: %w", s.Name, err)
		}
		sum += s.PerSecond * highest
	}
	if sum > maxRate {
		return fmt.Errorf("%.0f requests per second: %.0f are allowed", sum, maxRate)
	}
	return nil
}

func (s Stream) check() error {
	switch {
	case math.IsNaN(s.PerSecond) || s.PerSecond < 0 || s.PerSecond > maxRate:
		return fmt.Errorf("%g requests per second: outside 0 to %g", s.PerSecond, float64(maxRate))
	case (s.PerSecond > 0) == (len(s.At) > 0):
		return errors.New("give either requests per second or their times")
	case s.Burst < 0 || s.Burst > maxInFlight:
		return fmt.Errorf("burst %d: outside 0 to %d", s.Burst, maxInFlight)
	case len(s.At) > maxAt:
		return fmt.Errorf("%d times: %d are allowed", len(s.At), maxAt)
	}
	last := time.Duration(0)
	for _, at := range s.At {
		if at < last || at > maxDuration {
			return fmt.Errorf("time %v: they must be in order, up to %v", at, maxDuration)
		}
		last = at
	}
	return nil
}
