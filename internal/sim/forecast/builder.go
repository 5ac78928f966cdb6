package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// Bounds of what is kept of a recording, whatever it tells.
const (
	maxSteps   = 4 << 20 // of all threads; 16 bytes each
	maxThreads = 1 << 15 // of the container, and others' on CPUs
	maxPools   = 64
	maxNames   = 64 // pools of one process
	maxComm    = 64 // bytes of a thread's name; the kernel keeps 15
	maxWindow  = 10 * time.Minute
)

// Builder turns the events of a recording, one by one, into a Load. Not safe for use by several goroutines at once.
type Builder struct {
	h         recording.Header
	diagnosis *diagnose.Analysis
	names     *threadpool.Names
	processes map[uint32]string // by tgid: the name of the first thread
	now       int64
	threads   map[uint32]*thread
	order     []*thread
	cpus      map[int32]*cpu
	others    map[otherKey]*other
	phases    map[uint64]int64 // by cgroup: the first firing of its period timer
	measured  []*Pool
	crews     map[*Pool]*crew
	byName    map[poolName]*Pool
	steps     int
	full      bool // maxSteps: nothing more is taken in
	left      int  // threads beyond maxThreads
	lost      uint64
	footer    recording.Footer
	made      *Load // as far as Finish came
}

type poolName struct{ process, name string }

// cpu is who holds one.
type cpu struct {
	thread *thread
	owner  uint32
	since  int64
}

// NewBuilder begins with a recording's header. Errors are a host that cannot be simulated.
func NewBuilder(h recording.Header) (*Builder, error) {
	b := &Builder{
		h: h, diagnosis: diagnose.New(h, diagnose.Options{}), names: threadpool.NewNames(maxNames), processes: map[uint32]string{},
		threads: map[uint32]*thread{}, cpus: map[int32]*cpu{}, others: map[otherKey]*other{},
		phases: map[uint64]int64{}, byName: map[poolName]*Pool{}, crews: map[*Pool]*crew{},
	}
	if _, err := hostOf(&h); err != nil {
		return nil, err
	}
	for _, c := range h.Host.CPUs.List() {
		b.cpus[int32(c)] = &cpu{}
	}
	for _, t := range h.Threads {
		if t.TID == t.TGID {
			b.processes[t.TGID] = cutComm(t.Comm)
		}
	}
	for i := range h.Threads {
		b.begin(&h.Threads[i])
	}
	return b, nil
}

// Add takes in the next event.
func (b *Builder) Add(e *recording.Event) {
	if b.full {
		return
	}
	if b.steps >= maxSteps || e.AtNS > maxWindow.Nanoseconds() {
		b.full = true
		return
	}
	b.diagnosis.Add(e)
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
				b.end(t)
			}
		}
	case recording.Leave:
		if t := b.threads[e.Thread]; t != nil {
			b.leave(t, e.Owner)
		}
	case recording.Name, recording.Enter:
		b.onName(e)
	case recording.Period:
		if _, ok := b.phases[e.Cgroup]; !ok {
			b.phases[e.Cgroup] = e.AtNS
		}
	case recording.Lost:
		b.lost += e.Count
	}
}

func (b *Builder) onSwitch(e *recording.Event) {
	c := b.cpus[e.CPU]
	if c == nil {
		return
	}
	prev := b.thread(e.Thread)
	switch {
	case c.thread != nil && c.thread != prev:
		b.off(c.thread, false) // left unseen
	case c.thread == nil:
		b.held(e.CPU, c, e.Flags&recording.PrevRunnable != 0)
	}
	if prev != nil {
		b.off(prev, e.Flags&recording.PrevRunnable != 0 && !prev.dying)
		if prev.dying {
			b.end(prev)
		}
	}
	*c = cpu{owner: e.NextOwner, since: b.now}
	if next := b.thread(e.NextThread); next != nil {
		b.on(next, e.CPU)
		c.thread = next
	}
}

func (b *Builder) onWakeup(e *recording.Event) {
	t := b.thread(e.Thread)
	if t == nil || t.state != recording.Sleeping || t.dying {
		return
	}
	t.cpu = e.CPU
	waker := b.threads[e.Waker]
	timed := e.Waker == 0 && e.Owner == recording.Kernel
	before := len(t.told)
	idle := b.roused(t, waker, timed)
	switch {
	case e.Waker != 0 && waker != nil && waker != t && waker.state == recording.Running:
		b.flush(waker)
		b.step(waker, simulate.ReplayStep{Kind: simulate.StepWake, Thread: int32(t.index), Idle: idle, For: time.Duration(before)})
		b.step(t, simulate.ReplayStep{Kind: simulate.StepAwait, For: time.Duration(b.now), Idle: idle})
	default:
		if timed && t.sleptAt >= 0 {
			t.naps = append(t.naps, nap{step: len(t.steps), slept: b.now - t.sleptAt, at: b.now})
		}
		b.step(t, simulate.ReplayStep{Kind: simulate.StepUntil, For: time.Duration(b.now), Idle: idle})
	}
	t.woken, t.ran = b.now, false
	t.state = recording.Runnable
}

func (b *Builder) onName(e *recording.Event) {
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
	b.join(t, b.pool(t.tgid, e.Text))
}

// cutComm is a copy of a thread's name: a stranger's longer text is not kept.
func cutComm(comm string) string { return strings.Clone(comm[:min(len(comm), maxComm)]) }

// pool is that of a thread with that name.
func (b *Builder) pool(tgid uint32, comm string) *Pool {
	name := poolName{b.processes[tgid], b.names.Of(tgid, cutComm(comm))}
	if p := b.byName[name]; p != nil {
		return p
	}
	if len(b.measured) == maxPools-1 {
		name = poolName{"", threadpool.Other}
		if p := b.byName[name]; p != nil {
			return p
		}
	}
	p := &Pool{Name: name.name, Process: name.process, Recorded: newTimes()}
	b.byName[name] = p
	b.measured = append(b.measured, p)
	return p
}

// Finish ends the recording and gives what it holds. Errors are ErrEmpty, ErrNoLimit and a limit that the kernel would refuse.
func (b *Builder) Finish(f recording.Footer) (*Load, error) {
	if !b.full {
		b.now = max(b.now, min(f.EndNS, maxWindow.Nanoseconds()))
	}
	for c, on := range b.cpus {
		if on.thread == nil {
			b.held(c, on, true)
		}
	}
	b.relative()
	for _, t := range b.order {
		b.cut(t)
	}
	l := &Load{
		Target: b.h.Target.Name, Kernel: b.h.Host.Kernel, Window: time.Duration(b.now),
	}
	if l.Window <= 0 || len(b.order) == 0 {
		return nil, ErrEmpty
	}
	footer := f
	if b.full {
		footer = recording.Footer{EndNS: b.now}
		l.note("only the first %.3g s are replayed: more than %d steps or %v are too much", l.Window.Seconds(), maxSteps, maxWindow)
	}
	b.footer = f
	l.recorded(b.diagnosis.Finish(footer))
	l.charge(footer.UsageNS)
	if n := max(b.lost, f.LostEvents); n > 0 {
		l.note("%d events were lost while recording: every figure may be off", n)
	}
	if b.left > 0 {
		l.note("%d threads beyond the first %d are left out", b.left, maxThreads)
	}
	b.made = l
	if err := b.assemble(l); err != nil {
		return nil, err
	}
	return l, nil
}

// note adds something that the user should know of the forecast.
func (l *Load) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// sortedOthers are the tracks of others, in a fixed order.
func (b *Builder) sortedOthers() []*other {
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
