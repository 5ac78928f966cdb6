package threads

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// MaxThreads of one workload that run for real.
const MaxThreads = 4096

// Spec is one workload's threads.
type Spec struct {
	// Name of the workload; its threads are called Name-1 and so on, cut to the
	// kernel's 15 bytes from the front.
	Name    string
	Kind    scenario.Kind // Burn, SleepRun, Fib, Sleeper, Neighbour or Kernel
	Threads int
	Fast    int // Fib: threads that burn
	// Run and Sleep of all but Burn and Neighbour.
	Run, Sleep scenario.Duration
	On, Off    time.Duration // Neighbour; On 0: always
	Phases     []scenario.Phase
	// CPUs that threads of Fib are pinned to, in turn.
	CPUs []int
	// Start is from the beginning, Duration the whole scenario's.
	Start, Duration time.Duration
	// TimerSlack of the threads' sleeps (PR_SET_TIMERSLACK); 0: 1 ns.
	TimerSlack time.Duration
	Seed       uint64
	// Deadline: the process ends this long after its start.
	Deadline time.Duration
}

// Check returns the first mistake in a spec; nil: it has none.
func (s Spec) Check() error {
	switch {
	case s.Threads < 1 || s.Threads > MaxThreads:
		return fmt.Errorf("%s: %d threads: a workload that runs for real has 1 to %d", s.Name, s.Threads, MaxThreads)
	case s.Kind == scenario.Fib && len(s.CPUs) == 0:
		return fmt.Errorf("%s: no CPUs to pin its threads to", s.Name)
	case s.Duration <= 0 || s.Start < 0 || s.Start >= s.Duration:
		return fmt.Errorf("%s: start %v: outside 0 to %v", s.Name, s.Start, s.Duration)
	case s.Deadline <= 0 || s.Deadline > child.MaxDeadline:
		return fmt.Errorf("%s: deadline %v: outside 0 to %v", s.Name, s.Deadline, child.MaxDeadline)
	}
	switch s.Kind {
	case scenario.Burn, scenario.Neighbour:
	case scenario.SleepRun, scenario.Fib, scenario.Sleeper, scenario.Kernel:
		if s.Run.Average() <= 0 || s.Sleep.Average() <= 0 {
			return fmt.Errorf("%s: kind %s needs run and sleep", s.Name, s.Kind)
		}
	default:
		return fmt.Errorf("%s: kind %.20q has no threads of this package", s.Name, s.Kind)
	}
	return nil
}

// Result is what a workload's threads have measured.
type Result struct {
	Count uint64 `json:"count"`
	// Quantiles and the longest latency, in ms; nil: nothing was counted.
	P50 *float64 `json:"p50_ms"`
	P90 *float64 `json:"p90_ms"`
	P95 *float64 `json:"p95_ms"`
	P99 *float64 `json:"p99_ms"`
	Max *float64 `json:"max_ms"`
	// Unfinished at the end: runs or sleeps that were due to begin.
	Unfinished uint64 `json:"unfinished"`
	// Rounds of computing that burning threads have made.
	Rounds uint64 `json:"rounds"`
	// Failed is why a thread could not do its work; "": all did.
	Failed string `json:"failed"`
}
