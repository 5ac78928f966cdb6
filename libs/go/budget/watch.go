package budget

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/libs/go/internal/limit"
	"github.com/unthrottle/unthrottle/libs/go/pace"
)

const (
	// pollEvery is how often the limit is read.
	pollEvery = 250 * time.Millisecond
	// failures is how many times in a row the limit may be unreadable before it counts as none.
	failures = 2
	// overslept is the part of a period from which on a reading that comes late did so because the process was stopped.
	overslept = 50
	// checkEvery is how often a phase that is known is compared with cpu.stat.
	checkEvery = 2 * time.Second
)

// setProcs is how GOMAXPROCS is set; nil: the user did.
func setProcs() func(int) {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	return func(n int) {
		if n == 0 {
			runtime.SetDefaultGOMAXPROCS()
			return
		}
		runtime.GOMAXPROCS(n)
	}
}

// watcher follows the limit.
type watcher struct {
	b      *Budget
	limit  limit.Limit
	cpus   int // on how many the process may run
	failed int
	// next are the times of the next reading of the limit, of the phase, and of the next second.
	nextPoll, nextCheck, nextSecond time.Duration
	// The last readings.
	at, own, group time.Duration
	groupKnown     bool
	counted        *limit.Counters // nil: not known
	started        uint64
	ran            time.Duration // wall time of tasks
	active         bool          // App or Background ran since
	procs          int           // what was set
	// asked is when the watcher wanted to come again, throttled what the last sample of the phase counted.
	asked     time.Duration
	throttled uint64
}

func (w *watcher) run(ctx context.Context) {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := w.b.now()
		if now >= w.nextSecond {
			w.nextSecond = now + time.Second
			w.second()
		}
		if now >= w.nextPoll {
			w.poll()
		}
		w.asked = w.sample()
		timer.Reset(max(0, w.asked-w.b.now()))
	}
}

// second finds tasks that do not return.
func (w *watcher) second() {
	for i := range w.b.queues {
		q := &w.b.queues[i]
		q.mu.Lock()
		n := q.tick()
		if n > 0 {
			w.b.grant(q, w.b.now())
		}
		q.mu.Unlock()
		if n > 0 {
			w.b.warn("overdue", fmt.Errorf("budget: a task of class %s has run for %d s without Checkpoint: its "+
				"permit is given to others; "+
				"end the task, or call Permit.Checkpoint in it", q.class, overdueAfter))
		}
	}
}

// poll reads the limit and what was used.
func (w *watcher) poll() {
	b := w.b
	w.nextPoll = b.now() + pollEvery
	l, err := limit.Read(b.world.files)
	if err != nil {
		if w.failed++; w.failed < failures && w.at > 0 {
			return
		}
		b.warn("unreadable", fmt.Errorf("budget: %w; the program runs on as without a limit", err))
		l = limit.Limit{}
	} else {
		w.failed = 0
	}
	cpus := b.world.mayUse()
	if l != w.limit || cpus != w.cpus || w.at == 0 {
		if err == nil && w.limit.Limited() && !l.Limited() {
			b.warn("gone", errors.New("budget: the CPU limit is gone; the program runs on as without one"))
		}
		w.cpus = cpus
		w.apply(l)
	}
	w.use()
	if b.world.says.path == "" {
		return
	}
	if err := b.world.says.write(b.Snapshot()); err != nil {
		b.warn("file", fmt.Errorf("%w; the program runs on without the file", err))
	}
}

// mayUse is on how many CPUs the process may run now. Its cpuset may become wider or narrower while it runs, which
// [runtime.NumCPU] does not follow.
func (w world) mayUse() int {
	text, err := fs.ReadFile(w.files, "proc/self/status")
	if err != nil {
		return w.cpus
	}
	for line := range strings.Lines(string(text)) {
		list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !ok {
			continue
		}
		n := 0
		for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			first, last, isRange := strings.Cut(part, "-")
			if !isRange {
				last = first
			}
			from, bad := strconv.Atoi(first)
			to, worse := strconv.Atoi(last)
			if bad != nil || worse != nil || to < from {
				return w.cpus
			}
			n += to - from + 1
		}
		return n
	}
	return w.cpus
}

// apply makes a limit the one in force.
func (w *watcher) apply(l limit.Limit) {
	b := w.b
	w.limit, w.groupKnown, w.counted = l, false, nil
	paced := l.Limited() && !b.options.NoPacing
	if paced {
		if _, err := b.world.cpu(); err != nil {
			b.warn("cpu time", fmt.Errorf("budget: the CPU time of this process: %w; nothing is held back", err))
			paced = false
		} else if _, err := l.Counters(b.world.files); err != nil {
			b.warn("counters", fmt.Errorf("budget: %w; nothing is held back", err))
			paced = false
		}
	}
	var fits sizes
	if l.Limited() {
		fits = sizesOf(l.CPUs(), w.cpus, paced)
		paced = paced && fits != sizes{}
	}
	b.pacer.mu.Lock()
	b.pacer.on.Store(paced)
	b.pacer.quota, b.pacer.period, b.pacer.others = l.Quota, l.Period, pace.Others{}
	b.pacer.phase.Restart(l.Period)
	b.pacer.slack.Restart(l.Quota)
	b.pacer.mu.Unlock()
	w.setProcs(fits.GOMAXPROCS)
	b.mu.Lock()
	b.seen.LimitCPUs, b.seen.GOMAXPROCS = nil, w.procs
	if l.Limited() {
		cpus := l.CPUs()
		b.seen.LimitCPUs = &cpus
	}
	b.mu.Unlock()
	for i := range b.queues {
		q := &b.queues[i]
		q.mu.Lock()
		q.permits = fits.Permits[i]
		b.grant(q, b.now())
		q.mu.Unlock()
	}
}

func (w *watcher) setProcs(n int) {
	b := w.b
	if n == w.procs || b.options.KeepGOMAXPROCS {
		return
	}
	if b.world.procs == nil {
		b.warn("procs", fmt.Errorf("budget: GOMAXPROCS is set in the environment and stays; %d fits the limit of "+
			"%.3g CPUs", n, w.limit.CPUs()))
		return
	}
	b.world.procs(n)
	w.procs = n
}

// use reads CPU times and counters, and says what the rest of the container uses.
func (w *watcher) use() {
	b := w.b
	now := b.now()
	own, err := b.world.cpu()
	if err != nil {
		return
	}
	span, used := now-w.at, own-w.own
	first := w.at == 0
	w.at, w.own = max(1, now), own
	var started uint64
	var ran time.Duration
	running := 0
	for i := range b.queues {
		if q := &b.queues[i]; q.class != IO {
			q.mu.Lock()
			started += q.started
			ran += q.wallTime(now)
			running += q.running + q.waiting
			q.mu.Unlock()
		}
	}
	w.active = started != w.started || running > 0
	w.started = started
	taskTime := ran - w.ran
	w.ran = ran
	if first || span <= 0 || used < 0 {
		return
	}
	group, err := w.limit.Used(b.world.files)
	others := group - w.group - used
	b.pacer.mu.Lock()
	if err == nil && w.groupKnown && b.pacer.period > 0 {
		perPeriod := time.Duration(float64(others) * float64(b.pacer.period) / float64(span))
		b.pacer.others.Learn(perPeriod, span)
	}
	if taskTime > span/50 {
		b.pacer.busy.Learn(used, taskTime)
	}
	b.pacer.mu.Unlock()
	w.group, w.groupKnown = group, err == nil
	cpus := float64(used) / float64(span)
	counters, err := w.limit.Counters(b.world.files)
	b.mu.Lock()
	b.seen.UsedCPUs, b.seen.Periods, b.seen.Stopped = &cpus, nil, nil
	if err == nil {
		b.seen.Periods, b.seen.Stopped = &counters.Periods, &counters.Throttled
	}
	b.mu.Unlock()
	w.slack(counters, err == nil)
}

// slack learns from the counters how much quota to keep.
func (w *watcher) slack(now limit.Counters, ok bool) {
	before := w.counted
	if w.counted = nil; !ok {
		return
	}
	w.counted = &now
	p := &w.b.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if before != nil {
		if periods, throttled, ok := now.Since(*before); ok {
			p.slack.Learn(periods, throttled, p.held)
		}
	}
	p.held = false
}

// sample learns the phase of the period while there is work to be held back. It returns when to come again.
func (w *watcher) sample() time.Duration {
	p := &w.b.pacer
	now := w.b.now()
	if !p.on.Load() || !w.active {
		return w.nextPoll
	}
	p.mu.Lock()
	known, next := p.phase.Known(), p.phase.Next(now)
	p.mu.Unlock()
	if known && now > w.nextCheck+w.limit.Period {
		w.nextCheck = now + checkEvery
	}
	if known && now < w.nextCheck {
		return w.nextPoll
	}
	c, err := w.limit.Counters(w.b.world.files)
	if err == nil {
		resumed := pace.Step(w.throttled, c.Throttled) > 0 && now > w.asked+w.limit.Period/overslept
		w.throttled = c.Throttled
		p.mu.Lock()
		p.phase.Add(pace.Sample{From: now, To: w.b.now(), Periods: c.Periods, Resumed: resumed})
		p.mu.Unlock()
	}
	return min(next, w.nextPoll)
}
