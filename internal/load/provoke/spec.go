package provoke

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Pool is threads of one process that share a name and a rhythm.
type Pool struct {
	// Name of the threads, each followed by "-" and its number from 1; 1 to [maxPoolName] bytes.
	Name string
	// Threads, 1 to MaxThreads.
	Threads int
	// Work is the CPU time that each thread takes per run.
	Work time.Duration
	// Every is from the start of a run to that of the next; 0: one after the other without a pause.
	Every time.Duration
	// Together: all threads start at the same moment; else their starts are spread evenly over Every.
	Together bool
	// Kernel: the work is one system call per run instead of user code.
	Kernel bool
}

// Spec is one process.
type Spec struct {
	Pools    []Pool
	Deadline time.Duration // it ends this long after its start, whatever happens
}

// Bounds of a Spec.
const (
	maxPools    = 16
	maxThreads  = 256
	maxPoolName = 11 // the kernel keeps 15 bytes, the number needs some
	maxWork     = 10 * time.Second
)

// Check returns the first mistake in a spec; nil: it has none.
func (s Spec) Check() error {
	if len(s.Pools) > maxPools {
		return fmt.Errorf("%d pools: at most %d", len(s.Pools), maxPools)
	}
	for _, p := range s.Pools {
		if err := p.check(); err != nil {
			return fmt.Errorf("pool %q: %w", p.Name, err)
		}
	}
	return nil
}

func (p Pool) check() error {
	switch {
	case p.Name == "" || len(p.Name) > maxPoolName || strings.ContainsRune(p.Name, 0):
		return fmt.Errorf("a name has 1 to %d bytes", maxPoolName)
	case p.Threads < 1 || p.Threads > maxThreads:
		return fmt.Errorf("%d threads: outside 1 to %d", p.Threads, maxThreads)
	case p.Work <= 0 || p.Work > maxWork:
		return fmt.Errorf("work %v: outside 0 to %v", p.Work, maxWork)
	case p.Every < 0 || p.Every > maxWork:
		return fmt.Errorf("every %v: outside 0 to %v", p.Every, maxWork)
	case p.Together && p.Every == 0:
		return errors.New("together needs a rhythm: every is 0")
	}
	return nil
}

// demand is the CPUs that the pool wants on average without any limit.
func (p Pool) demand() float64 {
	if p.Every == 0 {
		return float64(p.Threads)
	}
	return min(float64(p.Threads), float64(p.Threads)*p.Work.Seconds()/p.Every.Seconds())
}
