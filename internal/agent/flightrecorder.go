package agent

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/probe/counts"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Probe counts what the kernel's scheduler does; *probe.Probe is one.
type Probe interface {
	observe.Probe
	// Measure has run do what the probe does in goroutines of its own.
	Measure(run func(w probe.Work, work func()))
}

// measuredProbe tells what the watcher's reads cost.
type measuredProbe struct {
	Probe
	spent *spent.CPU
}

func (m measuredProbe) ReadInto(id uint64, into *counts.Counts) error {
	begin := time.Now()
	defer func() { m.spent.Reading(time.Since(begin)) }()
	return m.Probe.ReadInto(id, into)
}

// Flight is what the flight recorder needs of the host.
type Flight struct {
	// Probe, nil where the kernel refuses one or the rules want none; Missing then says why.
	Probe   Probe
	Missing string
	// Record makes a recording of one container of RecordFor length, Read reads one.
	Record func(ctx context.Context, c container.Container, w io.Writer) error
	Read   func(ctx context.Context, file string) (fix.Learned, error)
	// Explain explains one: rows of the fleet have its responses and requests.
	Explain func(ctx context.Context, file string) (diagnose.Explanation, error)
	// Price finds the least CPUs of each remedy from a recording, for its objective if it has one, with replays by each, which
	// may end early; nil: none does.
	Price func(
		ctx context.Context, file string, o objective.Objective, each func(n int, do func(i int) error) error,
	) (demand.Pricing, error)
	// Dir is where periods and recordings are kept.
	Dir string
}

const (
	// RecordFor is how long the agent records by itself.
	RecordFor = 10 * time.Second
	// recordAgain is how long after a recording the same container is not recorded again, recordsPerHour the most of
	// all containers together: one that is always stopped shall not crowd out the others, nor recording cost much.
	recordAgain    = 15 * time.Minute
	recordsPerHour = 12
	// flushEvery is how much a crash of the agent may lose.
	flushEvery = 10 * time.Second
)

// RecordingsDir is where below the flight recorder's directory recordings are.
func RecordingsDir(dir string) string { return filepath.Join(dir, "recordings") }

// recorder is the flight recorder at work. mu guards the periods and figures.
type recorder struct {
	*agent
	store flightrecorder.Store

	mu         sync.Mutex
	periods    *flightrecorder.Recorder
	names      map[uint64]flightrecorder.Identity // of the containers of the last round, by cgroup id
	quotas     map[uint64]time.Duration           // the periods of their own quotas
	lostNS     uint64                             // of a row that came after others were lost
	own        map[uint64]*ownRecording           // made lately, by cgroup id
	underWay   chan struct{}                      // closed when the recording under way ends; nil: none is
	recordings float64
	removed    float64
	failures   float64
	sizer      sizer

	// headers are the targets of the recordings as GET /recordings read them last, by file.
	headersMu sync.Mutex
	headers   map[string]recording.Target

	// Of the goroutine that records alone.
	recorded map[uint64]time.Time
	latest   []time.Time
	// due holds the container to record next; one at a time.
	due chan dueRecording
	// toPrice holds a recording whose container is to be sized; one at a time.
	toPrice   chan toPrice
	threadCPU func() time.Duration // nil: the kernel's clock
}

type dueRecording struct {
	container container.Container
	id        uint64
	size      bool // it is recorded for its size, and not because it is stopped
}

func newRecorder(a *agent) *recorder {
	if err := os.RemoveAll(SizingDir(a.Flight.Dir)); err != nil { // what a crash left
		a.Log.Warn("recordings of before stay", "error", err)
	}
	kept, err := flightrecorder.Load(a.Flight.Dir)
	if err != nil {
		a.Log.Warn("some of what the flight recorder kept cannot be read", "error", err)
	}
	return &recorder{
		agent: a, store: flightrecorder.Store{Dir: RecordingsDir(a.Flight.Dir), Boot: a.Env.BootID}, periods: kept,
		names: map[uint64]flightrecorder.Identity{}, own: map[uint64]*ownRecording{}, recorded: map[uint64]time.Time{},
		due: make(chan dueRecording), toPrice: make(chan toPrice),
	}
}

// afterLoss is for how long after a loss of rows a row may be of several periods: the longest period, and its row's delay.
const afterLoss = 2 * time.Second

// keepPeriods takes the probe's rows in until ctx ends.
func (r *recorder) keepPeriods(ctx context.Context) error {
	if r.sink != nil {
		r.sink.Feed(true)
		defer func() {
			if r.budget.sheds(shedPeriods) { // else the agent ends, and the slot under way is kept as it is
				r.sink.Feed(false)
			}
		}()
	}
	r.probes.begin(true)
	defer r.probes.begin(false)
	return r.Flight.Probe.PeriodRows(ctx, func(row probe.PeriodRow) error {
		if r.sink != nil {
			r.sink.Period(row)
		}
		end := wall(row.EndNS)
		r.probes.row(row, end)
		r.mu.Lock()
		defer r.mu.Unlock()
		c, known := r.names[row.Cgroup]
		if !known {
			return nil
		}
		quota := r.quotas[row.Cgroup]
		if row.Lost {
			r.lostNS = row.EndNS
		}
		if row.EndNS < r.lostNS+uint64(afterLoss) { // it may have the periods of rows that the kernel had no room for
			quota = 0
		}
		var flags flightrecorder.Flags
		if row.Throttled {
			flags |= flightrecorder.Throttled
		}
		r.periods.Add(c, flightrecorder.Period{
			End: end, Length: time.Duration(row.LengthNS),
			MeanWidth: row.MeanWidth, MostWidth: row.MostWidth, Stopped: row.StoppedShare, Flags: flags,
		}.Busy(quota))
		return nil
	})
}

// wall is a moment of CLOCK_MONOTONIC on the wall clock.
func wall(monotonicNS uint64) time.Time {
	var now unix.Timespec
	// It cannot fail: the clock exists on all kernels.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return time.Now().Round(0).Add(time.Duration(int64(monotonicNS) - now.Nano()))
}

// flush writes the periods to disk now and then, and once more at the end.
func (r *recorder) flush(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		var err error
		r.spent.Do(spent.Periods, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			err = r.periods.Flush(r.Flight.Dir)
		})
		if err != nil {
			r.Log.Warn("the flight recorder's periods are not on disk", "error", err)
		}
		if ended {
			return nil
		}
	}
}

// round learns the containers' names and picks the container to record next, if there is one.
func (r *recorder) round(s observe.Snapshot) {
	names := make(map[uint64]flightrecorder.Identity, len(s.Observations))
	quotas := make(map[uint64]time.Duration, len(s.Observations))
	var worst dueRecording
	worstShare := r.Rules.Flight.RecordAbove
	for i := range s.Observations {
		o := &s.Observations[i]
		id := o.CgroupID
		if id == 0 {
			continue
		}
		names[id] = flightrecorder.Identity{ID: id, Boot: r.Env.BootID, Path: o.Container.Group.Path, Name: o.Container.Name}
		if len(o.Levels) > 0 && o.Levels[0].Limit.Limited() {
			quotas[id] = o.Levels[0].Limit.Period
		}
		// Only what is certain: by its upper bound a container may be recorded that was never stopped.
		if low, _, ok := o.StoppedPerSecond(); ok && low > worstShare {
			worst, worstShare = dueRecording{o.Container, id, false}, low
		}
	}
	r.mu.Lock()
	r.names, r.quotas = names, quotas
	forSize := r.toSize(s.Observations)
	r.mu.Unlock()
	if worst.id == 0 {
		worst = forSize
	}
	if worst.id == 0 || r.Flight.Record == nil || r.budget.sheds(shedRecordings) {
		return
	}
	select {
	case r.due <- worst: // the recording goroutine is free
	default:
	}
}

// record records the stopped containers, one after the other.
func (r *recorder) record(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-r.due:
			if d.size {
				r.sizeOne(ctx, d)
			} else if r.mayRecord(d.id, time.Now()) {
				busily(func() { r.spent.Do(spent.Recording, func() { r.recordOne(ctx, d) }) })
			}
		}
	}
}

// mayRecord keeps to recordAgain and recordsPerHour.
func (r *recorder) mayRecord(id uint64, now time.Time) bool {
	for other, at := range r.recorded {
		if now.Sub(at) >= recordAgain {
			delete(r.recorded, other)
		}
	}
	kept := r.latest[:0]
	for _, at := range r.latest {
		if now.Sub(at) < time.Hour {
			kept = append(kept, at)
		}
	}
	r.latest = kept
	if _, lately := r.recorded[id]; lately || len(r.latest) >= recordsPerHour {
		return false
	}
	r.recorded[id] = now
	r.latest = append(r.latest, now)
	return true
}

func (r *recorder) recordOne(ctx context.Context, d dueRecording) {
	name := text.Sanitize(d.container.Name, maxLabel)
	end := r.begin(d)
	kept, removed, err := r.store.Save(time.Now(), d.id, func(w io.Writer) error {
		return r.Flight.Record(ctx, d.container, w)
	})
	end(kept.File, err)
	if err == nil {
		r.tellSink(ctx, d.id, kept.File)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			r.failures++
			r.Log.Warn("a container that was stopped could not be recorded", "container", name, "error", err)
		}
		return
	}
	r.recordings++
	r.removed += float64(len(removed))
	for _, k := range removed {
		r.Log.Info("an old recording made room", "file", filepath.Base(k.File))
	}
	r.Log.Info("recorded a container that was stopped", "container", name, "file", filepath.Base(kept.File), "bytes", kept.Size)
}

// tellSink adds what a recording tells to the rows that are kept, if any are.
func (r *recorder) tellSink(ctx context.Context, id uint64, file string) {
	if r.sink == nil || r.Flight.Explain == nil {
		return
	}
	e, err := r.Flight.Explain(ctx, file)
	if err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("a recording adds nothing to the rows of the fleet", "file", filepath.Base(file), "error", err)
		}
		return
	}
	r.sink.Recording(id, &e)
}

// startFlight begins what needs the probe, and says so where there is none.
func (a *agent) startFlight(part func(name string, run func(context.Context) error)) {
	if a.Flight.Probe == nil {
		if a.Flight.Missing != "" {
			a.Log.Warn("no flight recorder and no widths", "why", a.Flight.Missing)
		}
		return
	}
	if err := os.MkdirAll(a.Flight.Dir, 0o700); err != nil {
		a.Log.Warn("the flight recorder has nowhere to write", "error", err)
	}
	a.recorder = newRecorder(a)
	part("flight recorder", func(ctx context.Context) error { return a.budget.unless(ctx, shedPeriods, a.recorder.keepPeriods) })
	part("flight recorder's files", a.recorder.flush)
	part("recording", a.recorder.record)
	part("pricing", a.recorder.price)
}
