package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of the memory that a recording may take, whatever it contains.
const (
	maxSteps   = 4 << 20 // of all threads; 16 bytes each
	maxThreads = 1 << 14 // of the container, in all; also of other owners on CPUs
	maxNames   = 64      // pools of one process
	maxComm    = 64      // bytes of a thread's name; the kernel keeps 15
	maxWindow  = 10 * time.Minute
)

// builder turns the events of a recording into a Load. It is not safe for concurrent use.
type builder struct {
	h         recording.Header
	diagnosis *diagnose.Analysis
	names     *threadpool.Names
	scan      *roles.Scan
	now       int64
	threads   []*thread // that are there, by their Index; nil: there is none
	order     []*thread
	cpus      map[int32]*cpu
	others    map[otherKey]*other
	widths    map[uint32]*width // of owners outside of the container
	phases    map[uint64]int64  // first expiry of the period timer, by cgroup
	pools     poolSet
	queues    map[*Pool]*workQueue
	exchanges []*exchange // by their connections' Index
	locked    map[uint32]bool
	requests  []recordedRequest
	polls     []foundByPoll
	steps     int
	full      bool // maxSteps or maxWindow reached: add ignores further events
	leftOut   int  // threads that the replay has no place for
	uncounted bool // so many were there at once that no one can tell
	runs      int  // kept one by one
	lost      uint64
	events    uint64 // taken in
	footer    recording.Footer
	load      *Load // nil before finish
}

// cpu is the holder of a CPU since a time.
type cpu struct {
	ours  bool // a thread of the container holds it
	owner uint32
	since int64
	held  bool // counted in its owner's width
}

// newBuilder begins with a recording's header. It returns an error if the host cannot be simulated.
func newBuilder(h recording.Header) (*builder, error) {
	b := &builder{
		h: h, names: threadpool.NewNames(maxNames), cpus: map[int32]*cpu{}, others: map[otherKey]*other{}, widths: map[uint32]*width{},
		phases: map[uint64]int64{}, queues: map[*Pool]*workQueue{}, locked: locked(h.Processes),
	}
	if _, err := hostOf(&h); err != nil {
		return nil, err
	}
	named := func(tgid uint32, comm string) string { return b.names.Of(tgid, cutComm(comm)) }
	b.scan = roles.NewScan(&h, named)
	for _, c := range h.Host.CPUs.List() {
		b.cpus[int32(c)] = &cpu{}
	}
	b.diagnosis = diagnose.New(h, diagnose.Options{
		PoolOf: func(_, tgid uint32, comm string) string { return named(tgid, comm) }}, b.scan, b)
	return b, nil
}

// add takes the next event.
func (b *builder) add(e *recording.Event) {
	if b.full {
		return
	}
	if b.steps >= maxSteps || e.AtNS > maxWindow.Nanoseconds() {
		b.full = true
		return
	}
	b.events++
	b.diagnosis.Add(e)
}

// Event takes what makes no change of threads and CPUs.
func (b *builder) Event(nowNS int64, e *recording.Event) {
	b.now = nowNS
	switch e.Kind {
	case recording.Period:
		if _, ok := b.phases[e.Cgroup]; !ok {
			b.phases[e.Cgroup] = e.AtNS
		}
	case recording.Lost:
		b.lost += e.Count
	}
}

// Changed takes a change of a thread or a CPU.
func (b *builder) Changed(c *schedule.Change) {
	switch c.Kind {
	case schedule.Began:
		b.begin(c.Thread)
		return
	case schedule.Unknown:
		b.uncounted = true
		return
	case schedule.Took:
		b.took(c)
		return
	case schedule.Received:
		b.onReceive(c)
		return
	}
	t := b.own(c.Thread)
	if t == nil {
		return
	}
	switch c.Kind {
	case schedule.Named:
		if c.Event == nil {
			t.first = t.CPU
		}
		b.joinPool(t, b.pool(t.Thread))
	case schedule.Woke:
		b.onWakeup(t, c)
	case schedule.Did:
		b.did(t, c)
	case schedule.Ended:
		b.end(t)
	case schedule.Sent:
		b.onSend(t, c.Connection)
	}
}

// took gives a CPU to its next holder.
func (b *builder) took(c *schedule.Change) {
	on := b.cpus[c.CPU]
	if on == nil {
		return
	}
	if !on.ours {
		b.noteOther(c.CPU, on, c.Event != nil && c.Event.Flags&recording.PrevRunnable != 0)
	}
	b.release(on)
	*on = cpu{ours: c.Holder.Thread != nil && b.own(c.Holder.Thread) != nil, since: b.now}
	if !on.ours && !c.Holder.Guessed {
		on.owner = c.Holder.Owner
		b.hold(on)
	}
}

func (b *builder) onWakeup(t *thread, c *schedule.Change) {
	e := c.Event
	waker := b.own(c.Waker)
	timed := e.Waker == 0 && e.Owner == recording.Kernel
	switch {
	case e.Flags&recording.New != 0: // its birth is no work that came
	case timed:
		t.wakes.timer++
	case e.Waker == 0:
		t.wakes.outside++
	default:
		t.wakes.inside++
	}
	sleep := len(t.steps) // the step that ends
	idle := b.noteWakeup(t, waker, timed)
	b.gave(waker, t)
	t.poll = poll{}
	switch {
	case waker != nil && waker != t && waker.workedLast():
		b.joined(t, waker)
		b.flush(waker)
		b.step(waker, simulate.ReplayStep{Kind: simulate.StepWake, Thread: int32(t.index), For: time.Duration(sleep)})
		b.step(t, simulate.ReplayStep{Kind: simulate.StepAwait, For: time.Duration(b.now), Idle: idle})
		t.wakers, t.poll = append(t.wakers, waker), waker.poll
	default:
		b.joined(t, nil)
		if timed && t.sleptAt >= 0 {
			t.poll = poll{t, len(t.steps), b.now}
			t.timerSleeps = append(t.timerSleeps, timerSleep{step: len(t.steps), slept: b.now - t.sleptAt, at: b.now})
		}
		b.step(t, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(b.now), Idle: idle})
	}
	b.hand(waker, t)
	t.woken, t.ran = b.now, false
}

// cutComm copies a thread's name. The copy lets go of the longer text that it may be part of.
func cutComm(comm string) string { return strings.Clone(comm[:min(len(comm), maxComm)]) }

// pool returns the pool of a thread by its name.
func (b *builder) pool(t *schedule.Thread) *Pool {
	comm := cutComm(t.Comm)
	return b.pools.of(poolName{cutComm(t.Process), b.names.Of(t.TGID, comm)}, comm)
}

// LimitChanged is the error for a recording during which a limit of the container changed.
type LimitChanged struct {
	Path    string // of the container
	Changes []recording.LimitChange
}

func (c *LimitChanged) Error() string {
	return recording.LimitsChanged(c.Path, c.Changes) + ", so that nothing can be forecast from this recording: record again"
}

// finish ends the recording and returns its Load. The errors are errEmpty, errNoLimit, *LimitChanged and a limit that the
// kernel would refuse.
func (b *builder) finish(f recording.Footer) (*Load, error) {
	if !b.full {
		b.now = max(b.now, min(f.EndNS, maxWindow.Nanoseconds()))
	}
	for c, on := range b.cpus {
		if !on.ours {
			b.noteOther(c, on, true)
			b.release(on)
		}
	}
	b.detectPeriodicTimers()
	for _, t := range b.order {
		b.endRecording(t)
	}
	b.splitRoles(f)
	l := &Load{
		target: b.h.Target.Name, path: b.h.Target.Path, kernel: b.h.Host.Kernel, window: time.Duration(b.now),
		created: b.h.Created, coreThreads: coreThreads(b.h.Host.Machine),
	}
	if l.window <= 0 || len(b.order) == 0 {
		return nil, errEmpty
	}
	footer := f
	if b.full {
		footer = recording.Footer{EndNS: b.now}
		l.note("the replay has only the first %.3g s: a recording may have %d steps and %v", l.window.Seconds(), maxSteps, maxWindow)
	}
	b.footer = f
	explained := b.diagnosis.Finish(footer)
	if len(explained.LimitChanges) > 0 {
		return nil, &LimitChanged{b.h.Target.Path, explained.LimitChanges}
	}
	l.levels = explained.Levels
	l.setRecorded(explained)
	usage, on := footer.UsageNS, int64(0)
	for _, ns := range f.OnCPUNS {
		on += ns
	}
	if b.full && f.UsageNS != nil && on > 0 { // the part that is replayed was charged as the whole was
		usage = new(int64(float64(*f.UsageNS) / float64(on) * float64(l.recorded.cpu)))
	}
	l.setCharged(usage)
	l.offered = b.offers()
	if n := max(b.lost, f.LostEvents); n > 0 {
		l.note("the recording lost %d events: every figure may be off", n)
	}
	switch {
	case b.uncounted:
		l.note("the replay leaves out threads beyond the first %d", maxThreads)
	case b.leftOut > 0:
		l.note("the replay leaves out %s beyond the first %d", text.Count(b.leftOut, "thread"), maxThreads)
	}
	l.languages = languagesOf(b.h.Processes)
	l.hasBudget = slices.ContainsFunc(b.h.Processes, func(p recording.Process) bool { return p.Budget != nil })
	b.load = l
	if err := b.assemble(l); err != nil {
		return nil, err
	}
	return l, nil
}

// note adds a remark for the user.
func (l *Load) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// sortedOthers returns the other owners of CPU time in a fixed order.
func (b *builder) sortedOthers() []*other {
	var all []*other
	for _, o := range b.others {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y *other) int {
		if x.owner != y.owner {
			return int(x.owner) - int(y.owner)
		}
		return int(x.cpu - y.cpu)
	})
	return all
}
