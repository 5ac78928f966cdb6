package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// WatchOptions configure a Watcher. The zero value watches all containers of the host.
type WatchOptions struct {
	Sampler Options
	// List finds the containers; nil means container.List below Scope with its default options.
	List func() ([]container.Container, error)
	// Scope limits the search for new cgroups and, with List nil, the list itself; "" means all.
	Scope string
	// Interval is the window of the observations, at least MinWindow; 0 means 1 s.
	Interval time.Duration
	// Pace returns how long the next window is; nil: Interval.
	Pace func() time.Duration
	// PollInterval is how often the Watcher reads cgroups that were stopped lately; 0 means 100 ms, below 0 never.
	PollInterval time.Duration
	// RescanInterval is how often the Watcher lists the containers without a notice from inotify; 0 means 10 s.
	RescanInterval time.Duration
	// MaxContainers bounds how many containers are watched; 0 means 10,000. Snapshot.Left counts the rest.
	MaxContainers int
	// LeaveVacant leaves out containers without a process: they have no observation and are not read. Snapshot.Vacant counts
	// them.
	LeaveVacant bool
	// Changed is called after each change of the containers, before the next snapshot, within a second of a cgroup's
	// creation. A container that was removed and made again under its path is both gone and new. nil means that no call
	// is made.
	Changed func(came, gone []container.Container)
	// Step runs each step's work, so that the caller can measure it; nil: it just runs.
	Step func(work func())
	// Log gets faults at warning level and details at debug level; nil means no log. A cgroup that vanishes while it is
	// read is a detail.
	Log *slog.Logger
}

// Snapshot is what a Watcher gives once per interval. The receiver may keep it.
type Snapshot struct {
	At time.Time
	// Observations of all containers that existed for a whole window, by path.
	Observations []Observation
	// Containers is how many are watched. Left is how many are not, because of MaxContainers.
	Containers, Left int
	// Vacant is how many of the watched have no process, and are left out.
	Vacant int
	// Hot is how many cgroups are read at the finer interval. Handles is how many files are open. Reads is how many
	// reads were made since the start.
	Hot, Handles int
	Reads        uint64
}

// Watcher observes all containers continuously. It has no goroutine of its own: Run is the loop.
type Watcher struct {
	host     *cgroup.Host
	opt      WatchOptions
	sampler  *Sampler
	notifier *notifier
	tracks   []*track // in the order of the list
	byPath   map[string]*track
	left     int
	listErr  bool // the last listing failed, which was logged

	nextSample, nextPoll, nextRescan time.Time
	earliestScan                     time.Time // not before this, whatever inotify reports
	dirty                            bool
	written                          bool // a setting was written, or a cgroup removed, since the last sample
	unwatched                        int  // rescans until the watches are set again
	// Quotas inside the containers are to be looked for, but not before earliestLook.
	numbers      uint64 // of tracks made
	inside       bool
	earliestLook time.Time
}

// track is one container with its two latest samples.
type track struct {
	container container.Container
	samples   [2]Sample
	latest    int
	taken     bool // samples[latest] is filled
	listed    bool // in the list that take is reading
	outdated  bool // container.Group must be looked up again
	// rounds counts those since the container came; number spreads the containers over them. vacant: no process is in it.
	// entered: one was written into it since.
	rounds, number  uint64
	vacant, entered bool
}

// NewWatcher returns a watcher; Run starts it.
func NewWatcher(h *cgroup.Host, o WatchOptions) *Watcher {
	if o.List == nil {
		options := container.DefaultOptions()
		options.Scope = o.Scope
		o.List = container.NewLister(h, options).List
	}
	setDefault(&o.Interval, time.Second)
	o.Interval = max(o.Interval, MinWindow)
	if o.Pace == nil {
		o.Pace = func() time.Duration { return o.Interval }
	}
	setDefault(&o.PollInterval, 100*time.Millisecond)
	setDefault(&o.RescanInterval, 10*time.Second)
	if o.MaxContainers <= 0 {
		o.MaxContainers = 10_000
	}
	if o.Changed == nil {
		o.Changed = func(_, _ []container.Container) {}
	}
	if o.Step == nil {
		o.Step = func(work func()) { work() }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{host: h, opt: o, byPath: map[string]*track{}}
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Run watches until ctx is done and returns its error. It gives each snapshot to fn. If fn is slow, windows are longer
// and samples that fell due meanwhile are left out.
func (w *Watcher) Run(ctx context.Context, fn func(Snapshot)) error {
	w.start()
	defer w.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		w.opt.Step(func() {
			if snapshot, ok := w.step(); ok {
				fn(snapshot)
			}
		})
		timer.Reset(max(0, w.next().Sub(w.now())))
	}
}

func (w *Watcher) start() {
	w.sampler = NewSampler(w.host, w.opt.Sampler)
	w.sampler.scope = w.opt.Scope
	var err error
	if w.notifier, err = newNotifier(); err != nil {
		w.opt.Log.Warn("watching without notifications", "err", err)
	}
}

func (w *Watcher) stop() {
	w.sampler.Close()
	w.notifier.close()
}

func (w *Watcher) now() time.Time { return w.sampler.opt.Now() }

// step does the work that is due.
func (w *Watcher) step() (Snapshot, bool) {
	now := w.now()
	happened := w.notifier.look()
	w.dirty, w.written = w.dirty || happened.made, w.written || happened.written
	w.enter(happened.entered)
	if !now.Before(w.nextRescan) || w.dirty && !now.Before(w.earliestScan) {
		w.rescan(now)
	}
	switch {
	case !now.Before(w.nextSample):
		interval := max(w.opt.Pace(), MinWindow)
		if w.nextSample = w.nextSample.Add(interval); !w.nextSample.After(now) {
			w.nextSample = now.Add(interval)
		}
		w.nextPoll = now.Add(w.opt.PollInterval)
		return w.sample(now), true
	case w.polls() && !now.Before(w.nextPoll):
		w.nextPoll = now.Add(w.opt.PollInterval)
		w.sampler.Poll()
	}
	return Snapshot{}, false
}

func (w *Watcher) polls() bool { return w.opt.PollInterval > 0 && w.sampler.Hot() > 0 }

// idleInterval is how often the Watcher asks inotify when nothing else is due.
const idleInterval = 500 * time.Millisecond

// next returns when step has work again.
func (w *Watcher) next() time.Time {
	next := w.now().Add(idleInterval)
	if w.nextSample.Before(next) {
		next = w.nextSample
	}
	if w.polls() && w.nextPoll.Before(next) {
		next = w.nextPoll
	}
	if w.dirty && w.earliestScan.Before(next) {
		next = w.earliestScan
	}
	return next
}
