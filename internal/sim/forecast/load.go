package forecast

import (
	"errors"
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Load is the demand of a container's threads and of the rest of the host, ready for a replay under any
// setting.
type Load struct {
	target, path string
	kernel       string
	window       time.Duration
	created      time.Time
	// coreThreads is how many CPUs the cores have that have most; 1 where that is not known.
	coreThreads int
	// recordedScenario is the host with the recorded limits. Its first workloads are those of Pools, the
	// others those of neighbours.
	recordedScenario scenario.Scenario
	replay           simulate.Replay
	// container and binding are cgroups of recordedScenario: the container's own, and the one with the least
	// limit at or above it.
	container, binding int
	pods               []int    // cgroups of the container's pod
	languages          []string // of its processes, those that have the project's library: see Forecast.Languages
	hasBudget          bool     // a process of it has that library in force
	limit              float64  // of binding, in CPUs
	levels             []recording.Level
	Pools              []*Pool
	requests           []recordedRequest
	recorded           recordedFigures
	othersUsed         time.Duration // CPU time
	notes              []string      // remarks for the user: missing data and assumptions

	offered offered
	charged float64 // share of the time on CPUs that the kernel charged: see setCharged

	own    int   // the first workloads, which are the container's
	others []int // indices of the neighbours' workloads
}

// Pool is one thread pool.
type Pool struct {
	Name, process string
	comm          string // of its first thread
	ofRuntime     bool   // a collector or compiler
	threads       int
	workloads     []int // indices in Load.recordedScenario
	recorded      simulate.ReplayTimes
	woken         wakeups
	wokenBy       map[*Pool]int // wake-ups by threads of each pool that ran then
	older         wakeups       // those of woken that are of processes from before the recording
	cpu           time.Duration
}

// wakeups counts what woke threads: clients and devices, the kernel for a timer, or threads of the container. Births
// do not count.
type wakeups struct{ outside, timer, inside int }

func (w *wakeups) add(o wakeups) {
	w.outside += o.outside
	w.timer += o.timer
	w.inside += o.inside
}

func (w wakeups) all() int { return w.outside + w.timer + w.inside }

// recordedFigures has the figures of the recording, to compare the replay with.
type recordedFigures struct {
	throttledPeriods *uint64        // of the binding level; nil: not measured
	stopped          *time.Duration // nil: not measured
	cpu              time.Duration
	// the most CPUs at once
	widest int
}

func newTimes() simulate.ReplayTimes {
	return simulate.ReplayTimes{Delay: simulate.NewTimes(), Response: simulate.NewTimes()}
}

func (l *Load) setRecorded(e diagnose.Explanation) {
	if c := e.ClosedLoop; c != nil {
		l.note("clients of pool %s wait for answers: a faster service gets more requests than were recorded, so that "+
			"its latency falls by less than forecast and more requests are answered", c.Pool)
	}
	if share := e.WarmingUp(); share > 0 {
		l.note("the program's own compiler used %.0f %% of the CPU time: the program is warming up and will need "+
			"less; look again later", 100*share)
	}
	l.recorded.throttledPeriods, l.recorded.stopped = e.ThrottledPeriods, e.Stopped
	for _, bar := range e.Width {
		l.recorded.cpu += time.Duration(bar.CPUs) * bar.Time
		if bar.Time > 0 {
			l.recorded.widest = max(l.recorded.widest, bar.CPUs)
		}
	}
}

// Read makes a Load of a recording. It returns the errors of recording.NewReader, and one if the host cannot
// be simulated, the recording has no events, or the container has no limit. It uses the sound part of a
// truncated or damaged recording, and notes that.
func Read(in io.Reader) (*Load, error) {
	b, end, err := readEvents(in)
	if err != nil {
		return nil, err
	}
	return b.replayable(end)
}

// replayable is the Load of a recording that was read.
func (b *builder) replayable(end end) (*Load, error) {
	l, err := b.finish(end.footer)
	if err != nil {
		return nil, err
	}
	switch {
	case end.damaged:
		l.note("the recording is damaged: the replay has only its first %.3g s", l.window.Seconds())
	case end.truncated:
		l.note("the recording is truncated: the replay has only its first %.3g s, and no counters", l.window.Seconds())
	}
	return l, nil
}

// end is how a recording ended.
type end struct {
	footer             recording.Footer
	damaged, truncated bool
}

// readEvents gives all sound events of a recording to a builder.
func readEvents(in io.Reader) (*builder, end, error) {
	r, err := recording.NewReader(in)
	if err != nil {
		return nil, end{}, err
	}
	b, err := newBuilder(r.Header)
	if err != nil {
		return nil, end{}, err
	}
	var e recording.Event
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		b.add(&e)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, recording.ErrDamaged) {
		return nil, end{}, err
	}
	of := end{r.Footer(), !errors.Is(err, io.EOF), r.Truncated()}
	if of.truncated || of.damaged {
		of.footer = recording.Footer{EndNS: b.now}
	}
	return b, of, nil
}
