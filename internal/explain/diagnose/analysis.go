package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// Analysis turns the events of a recording into an Explanation. It keeps the state of each CPU and each
// thread, and sums. Its memory is bounded whatever the events say. It is not safe for concurrent use.
//
// Events may contradict each other, because the recording lost some or a thread moved unseen. The last event
// that names the holder of a CPU counts, and all other state gives way. No time is ever negative, and no
// thread counts twice.
type Analysis struct {
	h recording.Header
	o Options

	now     int64 // the time up to which everything is counted
	cpus    []*cpu
	threads []*thread // by Index; nil: there is none
	reader  *schedule.Reader
	pools   poolTable
	clients clients
	owners  ownerTable
	levels  levels
	limits  *recording.LimitWatch
	classes []*class
	tracks  []*track
	limit   *float64 // the effective limit in CPUs
	// limitFills is how many CPUs the limit fills at once; 0: there is no limit.
	limitFills int

	width, wanted    timeHistogram
	sampled          timeHistogram
	held             int // threads that a quota holds back now
	toldWidth        int // as Options.Counts was called last
	toldWanted       int
	wide             int64 // time wider than the limit
	cpuTime          int64
	stopped          int64
	stoppedIntervals interval
	overview         overview
	starting         starting
	aboveLimit       interval // wanted is above the limit
	behind           wallTimes
	allowedWaiting   int64 // thread time of waiting for CPUs that the limit would have allowed

	switches       uint64
	chargedEarly   int64 // time from wake-ups on idle CPUs, and of those that preempt, to their switches: see checkUsage
	preempted      int   // switches from a thread that still wants the CPU to another owner: see checkUsage
	lost           uint64
	contradictions uint64 // events that contradict earlier ones
	unknownThreads uint64 // events of threads beyond schedule.MaxThreads
	outOfOrder     uint64 // events older than the one before
}

// sampleEvery is the distance of the samples of SampledWidth, as in the article.
const sampleEvery = int64(10 * time.Millisecond)

// New begins an analysis of a recording with that header. beside are told of the same events and changes, after it.
func New(h recording.Header, o Options, beside ...schedule.Watcher) *Analysis {
	o.complete()
	a := &Analysis{
		h: h, o: o, pools: newPoolTable(), owners: newOwnerTable(h.Recorder), starting: newStarting(h.Target.AgeNS),
	}
	a.levels, a.limits = newLevels(&h), recording.NewLimitWatch(&h)
	if a.limit = a.levels.limit(); a.limit != nil {
		a.limitFills = ceilCPUs(*a.limit)
	}
	a.classes = []*class{{cpus: h.CPUsAllowed}}
	if h.CPUsAllowed.IsEmpty() {
		a.classes[0].cpus = h.Host.CPUs
	}
	for _, c := range h.Host.CPUs.UnsortedList() {
		a.cpu(int32(c))
	}
	a.tracks = newTracks(&a.levels, h.Features.Periods, a.tick())
	a.reader = schedule.New(&h, append([]schedule.Watcher{a}, beside...)...)
	return a
}

// Add takes the next event.
func (a *Analysis) Add(e *recording.Event) { a.reader.Add(e) }

// advance counts the time up to an event with the state before it.
func (a *Analysis) advance(at int64) {
	if at <= a.now {
		return
	}
	from, d := a.now, at-a.now
	a.now = at
	width, wanted := a.width.n, a.wanted.n
	if a.o.Counts != nil && (width != a.toldWidth || wanted != a.toldWanted) {
		a.toldWidth, a.toldWanted = width, wanted
		a.o.Counts(span(from), width, wanted)
	}
	a.width.add(d)
	a.wanted.add(d)
	a.sampled.n = width
	a.sampled.add((at/sampleEvery - from/sampleEvery) * sampleEvery)
	a.cpuTime += int64(width) * d
	stopped := a.held > 0
	if stopped {
		a.stopped += d
		a.starting.add(from, at)
	}
	if a.limit != nil {
		if float64(width) > *a.limit {
			a.wide += d
		}
		a.aboveLimit.add(float64(wanted) > *a.limit, d)
		a.allowedWaiting += int64(max(0, min(wanted-width-a.held, a.limitFills-width))) * d
	}
	a.countBehind(d)
	a.stoppedIntervals.add(stopped, d)
	for _, c := range a.classes {
		c.add(d)
	}
	a.levels.add(d, width)
	a.overview.add(from, at, width, wanted, stopped)
	for _, t := range a.tracks {
		t.add(a, from, at, width, wanted, stopped)
	}
}

// onPeriod ends a row of the level's track, and keeps the timer's figures.
func (a *Analysis) onPeriod(e *recording.Event) {
	i, ok := a.levels.known.Find(e.Cgroup)
	if !ok {
		a.contradictions++
		return
	}
	a.levels.all[i].expired(e.Period)
	for _, t := range a.tracks {
		if t.level == i {
			t.expire(a, e.AtNS, e.Period)
		}
	}
}

// span is a duration of ns nanoseconds, at least 0.
func span(ns int64) time.Duration { return time.Duration(max(0, ns)) }
