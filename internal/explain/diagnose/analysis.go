package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Analysis turns the events of a recording, one by one, into an Explanation. It keeps the state of each CPU and each
// thread, and sums; its memory has a bound whatever the events say. Not safe for use by several goroutines at once.
//
// Events may contradict each other (some were lost, or a thread changed hands unseen): who a CPU was last told to hold
// counts, and everything else gives way. No time is ever negative, and no thread counts twice.
type Analysis struct {
	h recording.Header
	o Options

	now     int64 // up to when everything is counted
	cpus    []*cpu
	threads map[uint32]*thread
	byTGID  map[uint32]string // names of processes, by their first thread
	pools   poolTable
	owners  ownerTable
	levels  levels
	classes []*class
	tracks  []*track
	limit   *float64 // effective, in CPUs
	// limitFills is how many CPUs the limit fills at once, 0 without one.
	limitFills int

	width, wanted counted
	sampled       counted
	sample        int64
	held          int   // threads held back now
	wide          int64 // time spent wider than the limit
	cpuTime       int64
	stopped       int64
	spells        spell
	above         spell // wanted above the limit
	still         spell // held back, and nothing runs at all
	owed          int64 // thread time of waiting for CPUs that the limit would have let it use

	switches uint64
	early    int64 // time between wake-ups of threads on idle CPUs and their switches: see checkUsage
	lost     uint64
	odd      uint64 // events that contradict what was known
	unknown  uint64 // events of threads beyond maxThreads
	late     uint64 // events older than the one before
}

// New begins an analysis of a recording with that header.
func New(h recording.Header, o Options) *Analysis {
	o.complete()
	a := &Analysis{
		h: h, o: o, threads: map[uint32]*thread{}, byTGID: map[uint32]string{},
		sample: o.Sample.Nanoseconds(), pools: newPoolTable(), owners: newOwnerTable(),
	}
	a.levels = newLevels(h)
	if a.limit = a.levels.limit(); a.limit != nil {
		a.limitFills = ceilCPUs(*a.limit)
	}
	a.still.bound = max(1, a.levels.all[a.levels.unknown].PeriodNS)
	a.classes = []*class{{cpus: h.CPUsAllowed}}
	if h.CPUsAllowed.IsEmpty() {
		a.classes[0].cpus = h.Host.CPUs
	}
	for _, c := range h.Host.CPUs.UnsortedList() {
		a.cpu(int32(c))
	}
	a.tracks = newTracks(&a.levels, h.Features.Periods, a.tick())
	for _, p := range h.Processes {
		a.nameProcess(p)
	}
	for i := range h.Threads {
		a.startThread(&h.Threads[i])
	}
	return a
}

// Add takes in the next event.
func (a *Analysis) Add(e *recording.Event) {
	a.advance(e.AtNS)
	switch e.Kind {
	case recording.Switch:
		a.onSwitch(e)
	case recording.Wakeup:
		a.onWakeup(e)
	case recording.Migrate:
		a.onMigrate(e)
	case recording.Exit:
		a.onExit(e)
	case recording.Name:
		a.onName(e)
	case recording.Enter:
		a.onEnter(e)
	case recording.Leave:
		a.onLeave(e)
	case recording.Period:
		a.onPeriod(e)
	case recording.Define:
		a.owners.define(e)
	case recording.Lost:
		a.lost += e.Count
	case recording.Hold:
		a.onHold(e)
	case recording.Release:
		a.onRelease(e)
	}
}

// advance counts the time up to an event with the state before it.
func (a *Analysis) advance(at int64) {
	if at > maxAt {
		at = maxAt
	}
	if at <= a.now {
		if at < a.now {
			a.late++
		}
		return
	}
	from, d := a.now, at-a.now
	a.now = at
	width, wanted := a.width.n, a.wanted.n
	a.width.add(d)
	a.wanted.add(d)
	a.sampled.n = width
	a.sampled.add((at/a.sample - from/a.sample) * a.sample)
	a.cpuTime += int64(width) * d
	stopped := a.held > 0
	if stopped {
		a.stopped += d
	}
	if a.limit != nil {
		if float64(width) > *a.limit {
			a.wide += d
		}
		a.above.add(float64(wanted) > *a.limit, d)
		a.owed += int64(max(0, min(wanted-width-a.held, a.limitFills-width))) * d
	}
	a.still.add(stopped && width == 0, d)
	a.spells.add(stopped, d)
	for _, c := range a.classes {
		c.add(d)
	}
	a.levels.add(d)
	for _, t := range a.tracks {
		t.add(a, from, at, width, wanted, stopped)
	}
}

// onPeriod ends a row of the level's track, and remembers what the timer said.
func (a *Analysis) onPeriod(e *recording.Event) {
	i, ok := a.levels.find(e.Cgroup)
	if !ok {
		a.odd++
		return
	}
	a.levels.all[i].expired(e.Period)
	for _, t := range a.tracks {
		if t.level == i {
			t.expire(a, e.AtNS, e.Period)
		}
	}
}

// span is a non-negative duration.
func span(ns int64) time.Duration { return time.Duration(max(0, ns)) }
