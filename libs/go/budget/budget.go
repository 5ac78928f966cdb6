package budget

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options of [Setup]. The zero value is right for most programs.
type Options struct {
	// Warn is told once for each cause that makes the budget let everything run; nil: slog.Warn.
	Warn func(error)
	// KeepGOMAXPROCS leaves GOMAXPROCS alone.
	KeepGOMAXPROCS bool
	// NoPacing leaves only permits and rejection.
	NoPacing bool
}

// Budget is the CPU budget of a process. All methods may be called by many goroutines.
type Budget struct {
	options Options
	world   world
	begun   time.Time
	pacer   pacer
	queues  [classes]queue
	waiters sync.Pool
	// appWaits is how many App tasks wait; Background looks at it without App's lock.
	appWaits atomic.Int64

	mu     sync.Mutex
	seen   Snapshot // its Classes are read when asked
	warned map[string]bool
}

// world is what the budget touches.
type world struct {
	files fs.FS // the root of the file system
	cpu   func() (time.Duration, error)
	// procs sets GOMAXPROCS; 0 gives it back to Go. nil: it is the user's.
	procs func(int)
	// cpus is on how many CPUs the process may run, where that cannot be read.
	cpus int
	// says is what others read of the budget.
	says file
}

var process struct {
	sync.Mutex
	budget *Budget
}

// Setup starts the budget of the process with options. It fails if it has been started.
func Setup(o Options) error {
	process.Lock()
	defer process.Unlock()
	if process.budget != nil {
		return errors.New("budget: Setup after the budget of this process started; call it before the first Process")
	}
	says, err := newFile(os.Getenv(fileVariable))
	process.budget = start(context.Background(), o, world{os.DirFS("/"), processCPUTime, setProcs(), runtime.NumCPU(), says})
	if err != nil {
		process.budget.warn("file", err)
	}
	return nil
}

// Process is the budget of this process. The first call starts it, with the zero [Options], if [Setup] did not.
func Process() *Budget {
	process.Lock()
	b := process.budget
	process.Unlock()
	if b == nil {
		_ = Setup(Options{}) // another goroutine may have been first
		return Process()
	}
	return b
}

// start begins to watch the limit until the context ends. It has read it once when it returns.
func start(ctx context.Context, o Options, w world) *Budget {
	b := &Budget{options: o, world: w, begun: time.Now(), warned: make(map[string]bool)}
	if o.Warn == nil {
		b.options.Warn = func(err error) { slog.Warn(err.Error()) }
	}
	b.pacer.cpu = w.cpu
	b.pacer.busy.Restart()
	for i := range b.queues {
		b.queues[i].class = Class(i)
	}
	b.waiters.New = func() any { return &waiter{ready: make(chan struct{}, 1)} }
	watch := watcher{b: b}
	watch.poll()
	go watch.run(ctx)
	return b
}

// now is the time since the start, by a clock that does not jump.
func (b *Budget) now() time.Duration { return time.Since(b.begun) }

// warn tells of a cause once.
func (b *Budget) warn(cause string, err error) {
	b.mu.Lock()
	told := b.warned[cause]
	b.warned[cause] = true
	b.mu.Unlock()
	if !told {
		b.options.Warn(err)
	}
}

// Permit is the right of one task to run. It is released once. Goroutines of the task may share it; it is not copied once they do.
type Permit struct {
	b     *Budget
	class Class
	// around is the permit of the task around this one, which it runs by; nil: it has its own.
	around *Permit

	// The rest is guarded by the lock of the class.
	held, ended bool // not held and not ended: it is lent
	since       time.Duration
	second      uint32
	// checked is when Checkpoint was called last.
	checked time.Duration
	// back is closed once a lent permit is taken again, or that failed; nil: no one takes it.
	back chan struct{}
}

// over reports whether the task has ended.
func (p *Permit) over() bool {
	if p.b == nil {
		return true
	}
	q := &p.b.queues[p.class]
	q.mu.Lock()
	defer q.mu.Unlock()
	return p.ended
}

// Do runs a task when its class has a permit for it and the quota covers it, and at once within another task, as [WithPermit]
// says. The error is the context's, if that ends before the task starts. The task has no context with its permit: one that calls
// what may ask the budget again uses [Budget.Acquire] and [WithPermit].
func (b *Budget) Do(ctx context.Context, class Class, task func()) error {
	p, err := b.acquire(ctx, class, 0)
	if err != nil {
		return err
	}
	defer p.Release()
	task()
	return nil
}

// Acquire waits for a permit of a class. The caller releases it. Within another task there is one at once, as [WithPermit] says.
func (b *Budget) Acquire(ctx context.Context, class Class) (Permit, error) {
	return b.acquire(ctx, class, 0)
}

// AcquireWithin is Acquire for a task that is of use only if it starts within a time. It fails with [ErrLate] at once if the
// tasks that wait, at the pace of the last ones, take longer; and after that time at the latest.
func (b *Budget) AcquireWithin(ctx context.Context, class Class, within time.Duration) (Permit, error) {
	return b.acquire(ctx, class, max(1, within))
}

// acquire is by the permit around the task, or by one of its own. It has no bound for within 0.
func (b *Budget) acquire(ctx context.Context, class Class, within time.Duration) (Permit, error) {
	for {
		around := permitsOf(ctx).covering(b, class)
		if around == nil {
			return b.take(ctx, class, within, false)
		}
		held, err := around.goOn(ctx, within)
		if held || err != nil {
			return Permit{around: around}, err
		}
	}
}

// take has no bound for within 0. A task that goes on after it waited for something else (again) is the next of its class.
func (b *Budget) take(ctx context.Context, class Class, within time.Duration, again bool) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	q := &b.queues[class]
	now := b.now()
	q.mu.Lock()
	if (q.head == nil || again) && q.free() && b.mayStart(q, now, now) {
		p := q.start(now)
		q.mu.Unlock()
		p.b = b
		return p, nil
	}
	if within > 0 && q.expected() > within {
		q.late++
		q.mu.Unlock()
		return Permit{}, ErrLate
	}
	w := b.waiters.Get().(*waiter)
	w.since, w.granted = now, false
	if q.head == nil {
		q.lastGrant = 0 // nothing waited until now
	}
	if again {
		q.pushFirst(w)
	} else {
		q.push(w)
	}
	if class == App {
		b.appWaits.Add(1)
	}
	q.mu.Unlock()
	return b.wait(ctx, q, w, within)
}

func (b *Budget) wait(ctx context.Context, q *queue, w *waiter, within time.Duration) (p Permit, err error) {
	var late <-chan time.Time
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = ErrLate
	}
	q.mu.Lock()
	if err != nil && !w.granted {
		q.remove(w)
		if q.class == App {
			b.appWaits.Add(-1)
		}
		if errors.Is(err, ErrLate) {
			q.late++
		}
		b.grant(q, b.now())
		q.mu.Unlock()
		b.waiters.Put(w)
		return Permit{}, err
	}
	// A permit that was granted while the context ended is used: the task does not start later than it may.
	if err != nil {
		<-w.ready
	}
	p = w.permit
	q.mu.Unlock()
	b.waiters.Put(w)
	p.b = b
	return p, nil
}

// backgroundWaits is how long Background yields to App at most.
const backgroundWaits = time.Second

// mayStart reports whether pacing lets the next task of a class start, which has waited since a time. If not, it arranges that
// the class is asked again. The queue is locked.
func (b *Budget) mayStart(q *queue, now, since time.Duration) bool {
	if q.class == IO || !b.pacer.on.Load() {
		return true
	}
	if q.class == Background && b.appWaits.Load() > 0 && now-since < backgroundWaits {
		b.ask(q, 10*time.Millisecond)
		return false
	}
	ok, wait := b.pacer.decide(now, q.class, q.cost.High(), q.running-q.overdue)
	if !ok {
		q.held++
		b.ask(q, wait)
	}
	return ok
}

// ask looks again at a class after a time, or earlier where that was asked before. The queue is locked.
func (b *Budget) ask(q *queue, after time.Duration) {
	due := b.now() + after
	if q.armed && q.due <= due {
		return
	}
	q.armed, q.due = true, due
	if q.timer == nil {
		q.timer = time.AfterFunc(after, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.armed = false
			b.grant(q, b.now())
		})
		return
	}
	q.timer.Reset(after)
}

// grant starts those that wait, as many as may. The queue is locked.
func (b *Budget) grant(q *queue, now time.Duration) {
	for q.head != nil && q.free() && b.mayStart(q, now, q.head.since) {
		w := q.head
		q.remove(w)
		if q.class == App {
			b.appWaits.Add(-1)
		}
		if q.lastGrant > 0 {
			q.between.Add(now - q.lastGrant)
		}
		if q.lastGrant = now; q.head == nil {
			q.lastGrant = 0
		}
		w.permit, w.granted = q.start(now), true
		w.ready <- struct{}{}
	}
}

// Release ends the task.
func (p *Permit) Release() { p.giveBack(true) }

// giveBack lets others use the permit: for good, or until the task goes on.
func (p *Permit) giveBack(end bool) {
	b := p.b
	if b == nil {
		return
	}
	q := &b.queues[p.class]
	now := b.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	p.ended = p.ended || end
	if !p.held {
		return
	}
	p.held = false
	q.running--
	q.finished++
	q.forget(p.second)
	q.ran += now
	q.cost.Add(now - p.since)
	if q.head != nil {
		b.grant(q, now)
	}
}

// Wait runs what a task waits for, such as a query of a database, while others may use its permit. After that the task is the
// next of its class. The error is the context's; then the task has no permit any more. Of several goroutines of a task that wait,
// the first lends its permit, and the first that goes on takes one for all.
func (p *Permit) Wait(ctx context.Context, wait func()) error {
	if p.around != nil {
		return p.around.Wait(ctx, wait)
	}
	p.giveBack(false)
	wait()
	if p.b == nil {
		return ctx.Err()
	}
	_, err := p.goOn(ctx, 0)
	return err
}

// goOn takes a permit again where the task has lent its own, within a time if that is above 0, and reports whether the task has
// it. One goroutine of the task takes it for all: two that did would wait for each other.
func (p *Permit) goOn(ctx context.Context, within time.Duration) (held bool, err error) {
	q := &p.b.queues[p.class]
	var late <-chan time.Time
	begun := p.b.now()
	for {
		q.mu.Lock()
		if p.held || p.ended {
			held = p.held
			q.mu.Unlock()
			return held, ctx.Err()
		}
		back := p.back
		if back == nil {
			p.back = make(chan struct{})
			q.mu.Unlock()
			return p.takeAgain(ctx, q, within, begun)
		}
		q.mu.Unlock()
		if within > 0 && late == nil {
			timer := time.NewTimer(within)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-back:
		case <-ctx.Done():
			return false, ctx.Err()
		case <-late:
			q.mu.Lock()
			q.late++
			q.mu.Unlock()
			return false, ErrLate
		}
	}
}

// takeAgain is for the one goroutine that takes the permit for all.
func (p *Permit) takeAgain(ctx context.Context, q *queue, within, begun time.Duration) (held bool, err error) {
	if within > 0 {
		within = max(1, within-(p.b.now()-begun))
	}
	again, err := p.b.take(ctx, p.class, within, true)
	q.mu.Lock()
	close(p.back)
	p.back = nil
	if held = err == nil && !p.ended; held {
		p.held, p.since, p.second, p.checked = true, again.since, again.second, 0
	}
	q.mu.Unlock()
	if err == nil && !held {
		again.Release() // the task has ended meanwhile
	}
	return held, err
}

// Checkpoint lets a long task hold back. Call it every millisecond or so of work, without locks held: it returns at once while
// the quota covers the work, and else waits, with the permit. The error is the context's.
func (p *Permit) Checkpoint(ctx context.Context) error {
	if p.around != nil {
		return p.around.Checkpoint(ctx)
	}
	b := p.b
	if b == nil || p.class == IO {
		return ctx.Err()
	}
	q := &b.queues[p.class]
	now := b.now()
	q.mu.Lock()
	held, last := p.held, max(p.checked, p.since)
	q.mu.Unlock()
	if !held {
		return ctx.Err()
	}
	for b.pacer.on.Load() {
		q.mu.Lock()
		others := q.running - q.overdue - 1
		q.mu.Unlock()
		ok, wait := b.pacer.decide(now, p.class, now-last, max(0, others))
		if ok {
			break
		}
		q.mu.Lock()
		q.held++
		q.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		last = b.now() - (now - last)
		now = b.now()
	}
	q.mu.Lock()
	p.checked = now
	if p.held && p.second != q.second {
		q.forget(p.second)
		q.ages[q.second%overdueAfter]++
		p.second = q.second
	}
	q.mu.Unlock()
	return ctx.Err()
}
