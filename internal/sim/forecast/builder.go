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
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Bounds of the memory that a recording may take, whatever it contains.
const (
	maxSteps   = 4 << 20 // of all threads; 16 bytes each
	maxThreads = 1 << 14 // of the container; also of other owners on CPUs
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
	processes map[uint32]string // name of the first thread, by tgid
	now       int64
	threads   map[uint32]*thread
	order     []*thread
	cpus      map[int32]*cpu
	others    map[otherKey]*other
	widths    map[uint32]*width // of owners outside of the container
	phases    map[uint64]int64  // first expiry of the period timer, by cgroup
	pools     poolSet
	queues    map[*Pool]*workQueue
	exchanges map[uint32]*exchange // by socket
	requests  []recordedRequest
	polls     []foundByPoll
	steps     int
	full      bool // maxSteps or maxWindow reached: add ignores further events
	leftOut   leftOut
	runs      int // kept one by one
	lost      uint64
	events    uint64 // taken in
	footer    recording.Footer
	load      *Load // nil before finish
}

// cpu is the holder of a CPU since a time.
type cpu struct {
	thread *thread
	owner  uint32
	since  int64
	held   bool // counted in its owner's width
}

// newBuilder begins with a recording's header. It returns an error if the host cannot be simulated.
func newBuilder(h recording.Header) (*builder, error) {
	b := &builder{
		h: h, names: threadpool.NewNames(maxNames), processes: map[uint32]string{},
		threads: map[uint32]*thread{}, cpus: map[int32]*cpu{}, others: map[otherKey]*other{}, widths: map[uint32]*width{},
		phases: map[uint64]int64{}, queues: map[*Pool]*workQueue{}, exchanges: map[uint32]*exchange{},
	}
	if _, err := hostOf(&h); err != nil {
		return nil, err
	}
	named := func(tgid uint32, comm string) string { return b.names.Of(tgid, cutComm(comm)) }
	b.scan = roles.NewScan(&h, named)
	b.diagnosis = diagnose.New(h, diagnose.Options{PoolOf: func(_, tgid uint32, comm string) string { return named(tgid, comm) }})
	for _, c := range h.Host.CPUs.List() {
		b.cpus[int32(c)] = &cpu{}
	}
	for _, t := range h.Threads {
		if t.TID == t.TGID {
			b.processes[t.TGID] = cutComm(t.Comm)
		}
	}
	for i := range h.Threads {
		b.addThread(&h.Threads[i])
	}
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
	b.scan.Add(e)
	b.now = max(b.now, e.AtNS)
	switch e.Kind {
	case recording.Switch:
		b.onSwitch(e)
	case recording.Wakeup:
		b.onWakeup(e)
	case recording.Migrate:
		if t := b.threads[e.Thread]; t != nil {
			t.cpu = e.CPU
		}
	case recording.Exit:
		if t := b.threads[e.Thread]; t != nil {
			t.dying = true
			if t.state == recording.Sleeping {
				b.exit(t)
			}
		}
		b.leftOut.exits(e.Thread)
	case recording.Leave:
		if t := b.threads[e.Thread]; t != nil {
			b.leaveContainer(t, e.Owner)
		}
		b.leftOut.leaves(e.Thread)
	case recording.Name, recording.Enter:
		b.onName(e)
	case recording.Period:
		if _, ok := b.phases[e.Cgroup]; !ok {
			b.phases[e.Cgroup] = e.AtNS
		}
	case recording.Receive:
		b.onReceive(e)
	case recording.Send:
		b.onSend(e)
	case recording.Lost:
		b.lost += e.Count
	}
}

func (b *builder) onSwitch(e *recording.Event) {
	c := b.cpus[e.CPU]
	if c == nil {
		return
	}
	prev := b.thread(e.Thread)
	switch {
	case c.thread != nil && c.thread != prev:
		b.stopRunning(c.thread, false) // the recording missed its switch
	case c.thread == nil:
		b.noteOther(e.CPU, c, e.Flags&recording.PrevRunnable != 0)
	}
	if prev != nil {
		b.stopRunning(prev, e.Flags&recording.PrevRunnable != 0 && !prev.dying)
		if prev.dying {
			b.exit(prev)
		}
	}
	b.leftOut.stopped(e.Thread)
	b.release(c)
	*c = cpu{owner: e.NextOwner, since: b.now}
	if next := b.thread(e.NextThread); next != nil {
		b.startRunning(next, e.CPU)
		c.thread = next
		return
	}
	b.hold(c)
}

func (b *builder) onWakeup(e *recording.Event) {
	t := b.thread(e.Thread)
	if t == nil || t.state != recording.Sleeping || t.dying {
		return
	}
	t.cpu = e.CPU
	waker := b.threads[e.Waker]
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
	t.handed, t.byWaker = 0, 0
	if waker != nil && waker != t {
		t.byWaker = int64(b.atWork(waker))
		t.handed = t.byWaker + waker.byWaker
	}
	t.woken, t.ran = b.now, false
	t.state = recording.Runnable
}

func (b *builder) onName(e *recording.Event) {
	if e.Thread != 0 && e.Thread == e.TGID && len(b.processes) < maxThreads {
		b.processes[e.TGID] = cutComm(e.Text)
	}
	t := b.thread(e.Thread)
	if t == nil {
		return
	}
	if e.Cgroup != 0 {
		t.cgroup = e.Cgroup
	}
	if e.TGID != 0 {
		t.tgid = e.TGID
	}
	b.joinPool(t, b.pool(t.tgid, e.Text))
}

// cutComm copies a thread's name. The copy lets go of the longer text that it may be part of.
func cutComm(comm string) string { return strings.Clone(comm[:min(len(comm), maxComm)]) }

// pool returns the pool of a process's threads with that name.
func (b *builder) pool(tgid uint32, comm string) *Pool {
	comm = cutComm(comm)
	return b.pools.of(poolName{b.processes[tgid], b.names.Of(tgid, comm)}, comm)
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
		if on.thread == nil {
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
	l.setCharged(footer.UsageNS)
	if n := max(b.lost, f.LostEvents); n > 0 {
		l.note("the recording lost %d events: every figure may be off", n)
	}
	if n := b.leftOut.count; n > 0 {
		l.note("the replay leaves out %s%d threads beyond the first %d", text.Either(b.leftOut.uncounted, "at least ", ""), n, maxThreads)
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
