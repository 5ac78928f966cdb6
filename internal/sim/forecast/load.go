package forecast

import (
	"errors"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/scenario"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Load is what a container's threads wanted, and what else there was on its host: ready to be replayed under any setting.
type Load struct {
	Target string
	Kernel string
	Window time.Duration
	// Scenario is the host with the recorded limits; its workloads are those of Pools, then others'.
	Scenario scenario.Scenario
	Replay   simulate.Replay
	// Container and Binding are cgroups of Scenario: the container's own, and the one with the least limit at or above it.
	Container, Binding int
	Limit              float64 // of Binding, in CPUs
	Pools              []*Pool
	Recorded           Recorded
	OthersUsed         time.Duration // CPU time
	Notes              []string      // what is missing or taken for granted

	charged float64 // of the time on CPUs; see charge

	own    int   // workloads of the container: the first ones
	others []int // workloads of others
}

// Pool is one thread pool.
type Pool struct {
	Name, Process string
	Threads       int
	Workloads     []int // of Load.Scenario
	Recorded      simulate.ReplayTimes
}

// Recorded is what really happened, to hold the replay against.
type Recorded struct {
	ThrottledPeriods *uint64        // of the level that binds; nil: not measured
	Stopped          *time.Duration // nil: not measured
	CPU              time.Duration
	// Widest is the most CPUs at once.
	Widest int
}

func newTimes() simulate.ReplayTimes {
	return simulate.ReplayTimes{Delay: simulate.NewTimes(), Response: simulate.NewTimes()}
}

func (l *Load) recorded(e diagnose.Explanation) {
	l.Recorded.ThrottledPeriods, l.Recorded.Stopped = e.ThrottledPeriods, e.Stopped
	for _, bar := range e.Width {
		l.Recorded.CPU += time.Duration(bar.CPUs) * bar.Time
		if bar.Time > 0 {
			l.Recorded.Widest = max(l.Recorded.Widest, bar.CPUs)
		}
	}
}

// Read makes a Load of a recording. Errors are those of recording.NewReader and NewBuilder, ErrEmpty, ErrNoLimit; a
// recording that was cut off or is damaged is used as far as it goes, and a note says so.
func Read(in io.Reader) (*Load, error) {
	r, err := recording.NewReader(in)
	if err != nil {
		return nil, err
	}
	b, err := NewBuilder(r.Header)
	if err != nil {
		return nil, err
	}
	var e recording.Event
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		b.Add(&e)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, recording.ErrDamaged) {
		return nil, err
	}
	footer, truncated := r.Footer(), r.Truncated()
	if truncated || !errors.Is(err, io.EOF) {
		footer = recording.Footer{EndNS: b.now}
	}
	l, failed := b.Finish(footer)
	switch {
	case failed != nil:
		return nil, failed
	case !errors.Is(err, io.EOF):
		l.note("the recording is damaged: only its first %.3g s are used", l.Window.Seconds())
	case truncated:
		l.note("the recording was cut off: only its first %.3g s are used, and its counters are missing", l.Window.Seconds())
	}
	return l, nil
}
