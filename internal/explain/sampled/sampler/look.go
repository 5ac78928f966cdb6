package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Options of Look.
type Options struct {
	// Proc is the proc file system; "" is /proc. PID is the process whose cgroup is looked at.
	Proc string
	PID  int
	// For is how long it looks at most, Least how long at least.
	For, Least time.Duration
	// Share is the share of the limit that it may use itself; of one CPU where there is no limit.
	Share float64
	// Pools returns what names the pools of threads; nil: their names alone do. It is asked once, when the look is over.
	Pools func(threads []roles.Seen, processes map[uint32]roles.Process) (poolOf func(tid, pid uint32, comm string) string)
}

// Found is what a look found.
type Found struct {
	Figures diagnose.Sampled
	// LimitChanges are limits that changed meanwhile. Ended says how the target ended; "": it has not.
	LimitChanges []recording.LimitChange
	Ended        string
	CPUsAllowed  int
	// LongFull of LongAll stretches of sampled.LongestPeriod used up the limit.
	LongFull, LongAll int
	// Samples and Threads are how many there were, Cost is the CPU time of this process, and Took the wall time.
	Samples, Threads int
	Cost, Took       time.Duration
}

// Closeness and length of an episode. It begins with few samples a period, and takes more where that costs no more than its share.
const (
	fewSamples  = 5
	moreSamples = 10
	closest     = 4 * time.Millisecond
	farthest    = 20 * time.Millisecond
	episode     = time.Second
	// leastEpisode is taken whatever it costs: less says nothing.
	leastEpisode = 300 * time.Millisecond
	relistEvery  = 100 * time.Millisecond
	// maxLogged bounds the readings of threads that are kept until the look is over; each takes about 80 bytes.
	maxLogged = 1 << 18
	// fewThreads are listed that often; more once an episode.
	fewThreads = 64
)

// A look is clear with enoughStops, or without any where fewBefore of the periods were throttled before it.
const (
	enoughStops = 20
	fewBefore   = 0.01
)

// Look takes samples. The end of ctx ends it early. The error says that there is no such process, or that nothing of it can be read.
func Look(ctx context.Context, o Options) (Found, error) {
	o.Proc = cmp.Or(o.Proc, "/proc")
	if _, err := os.Stat(filepath.Join(o.Proc, strconv.Itoa(o.PID))); err != nil {
		return Found{}, fmt.Errorf("process %d: there is none, or /proc hides it from this user (hidepid)", o.PID)
	}
	l := &look{Options: o, start: time.Now(), group: findGroup(o.Proc, o.PID)}
	pids, notes := l.group.members(o.PID)
	l.threads = newThreads(o.Proc, pids)
	defer l.threads.close()
	l.threads.list(true)
	if len(l.threads.all) == 0 {
		return Found{}, fmt.Errorf("process %d: its threads cannot be read: it has ended, /proc hides it from this user (hidepid), "+
			"or the kernel counts no waiting (CONFIG_SCHED_INFO)", o.PID)
	}
	l.counters = openCounters(&l.group)
	defer l.counters.close()
	target, more := l.group.describe(o.Proc, o.PID)
	target.Start = l.start
	target.Process = func(pid uint32) string { return l.threads.processes[pid].Name }
	l.notes, l.target = append(notes, more...), target
	l.clients = clients{proc: o.Proc, serves: map[int]bool{}, unread: map[int]bool{}}
	l.run(ctx, target.Levels)
	target.Serves = l.clients.of
	if o.Pools != nil {
		target.PoolOf = o.Pools(l.threads.done(), l.threads.processes)
	}
	l.analysis = sampled.Of(target, l.log)
	return l.found(target), nil
}

// look is one look.
type look struct {
	Options
	group    group
	threads  *threads
	counters *counters
	clients  clients
	log      []sampled.Sample // until it is over: which threads make a pool shows then
	did      []sampled.Thread // space of a reading
	logged   int              // threads in it
	analysis *sampled.Analysis
	notes    []string
	target   sampled.Target
	start    time.Time
	spent    time.Duration // the CPU time of this process
	hostUsed time.Duration // while episodes went on
	unknown  bool          // what the host used could not be read
	first    *sampled.Sample
	last     *sampled.Sample
	beside   map[string]time.Duration
	ended    string
	most     struct {
		threads int           // at once
		cost    time.Duration // that the whole look may have
	}
	leftOut int
	stops   uint64 // throttled periods within episodes
}

// run takes episodes until the look is over.
func (l *look) run(ctx context.Context, levels []recording.Level) {
	runtime.LockOSThread() // its samples wait for no other thread of ours
	defer runtime.UnlockOSThread()
	if l.group.host != nil {
		l.beside = l.group.siblings()
	}
	every := l.every(fewSamples)
	rate := l.Share * cmp.Or(l.group.limit(), 1)
	l.most.cost = time.Duration(rate * float64(l.For))
	for {
		before := ownCPU()
		l.episode(ctx, every)
		l.spent = ownCPU()
		cost, took := l.spent-before, time.Since(l.start)
		if ctx.Err() != nil ||
			l.ended != "" || took >= l.For || l.logged >= maxLogged || took >= l.Least && l.clear(levels) && l.paid(rate, took) {
			return
		}
		if 2*cost.Seconds() < rate*episode.Seconds() {
			every = l.every(moreSamples)
		}
		// The next episode may begin when its cost will be paid for at its end.
		due := time.Duration((l.spent+cost).Seconds()/rate*float64(time.Second)) - episode
		if due >= l.For || clock.Sleep(ctx, due-took) != nil {
			return
		}
	}
}

// paid reports whether the cost is within the share.
func (l *look) paid(rate float64, took time.Duration) bool {
	return l.spent.Seconds() <= rate*took.Seconds()
}

// every is the time between two samples, of which there are so many in a period.
func (l *look) every(samples int) time.Duration {
	shortest := bandwidth.DefaultPeriod
	for _, level := range l.group.levels {
		if level.Limit.Limited() {
			shortest = min(shortest, level.Limit.Period)
		}
	}
	return min(max(shortest/time.Duration(samples), closest), farthest)
}

// episode takes close samples for a while.
func (l *look) episode(ctx context.Context, every time.Duration) {
	hostBefore, errBefore := procfs.ReadStat(os.DirFS(l.Proc))
	begun := time.Now()
	listed := begun
	apart := true
	for time.Since(begun) < episode && time.Since(l.start) < l.For && ctx.Err() == nil {
		if now := time.Now(); apart || now.Sub(listed) >= relistEvery && len(l.threads.all) <= fewThreads {
			l.threads.pids, _ = l.group.members(l.PID)
			l.threads.list(apart)
			l.clients.look(l.threads.pids)
			l.most.threads, l.leftOut = max(l.most.threads, len(l.threads.all)), max(l.leftOut, l.threads.left)
			listed = now
		}
		if !l.sample(apart) || time.Since(begun) > leastEpisode && ownCPU() > l.most.cost {
			return
		}
		apart = false
		// The thread itself sleeps: a timer of the runtime would cost several switches between its threads.
		pause := unix.NsecToTimespec(int64(every*3/4) + rand.Int64N(int64(every)/2))
		_ = unix.Nanosleep(&pause, nil) // a signal may end it early, which only makes a sample closer
	}
	l.threads.count()
	hostAfter, errAfter := procfs.ReadStat(os.DirFS(l.Proc))
	if errors.Join(errBefore, errAfter) != nil {
		l.unknown = true
		return
	}
	l.hostUsed += hostAfter.Total.Since(hostBefore.Total).Used()
}

// sample takes one sample; false: the target has ended.
func (l *look) sample(apart bool) bool {
	s := &sampled.Sample{At: time.Since(l.start), Apart: apart}
	gone := l.counters.read(s)
	did, there := l.threads.read(l.did[:0], apart)
	switch {
	case gone:
		l.ended = "its cgroup was removed"
	case there == 0:
		l.ended = "its last thread ended"
	}
	if l.ended != "" {
		return false
	}
	l.did, s.Threads = did, slices.Clone(did)
	l.log, l.logged = append(l.log, *s), l.logged+len(did)
	if l.last != nil && !apart {
		l.stops += throttled(l.last, s)
	}
	if l.first == nil {
		l.first = &sampled.Sample{Counters: s.Counters}
	}
	l.last = s
	return true
}

// clear reports whether more samples would tell nothing new: it was stopped often enough while it was looked at, or never and hardly
// before.
func (l *look) clear(levels []recording.Level) bool {
	stops, before := uint64(0), 0.0
	for i := range levels {
		if i >= len(l.first.Counters) || l.first.Counters[i] == nil || l.last.Counters[i] == nil || levels[i].QuotaNS == nil {
			continue
		}
		was, is := l.first.Counters[i], l.last.Counters[i]
		stops += is.ThrottledPeriods - was.ThrottledPeriods
		before = max(before, float64(was.ThrottledPeriods)/float64(max(1, was.Periods)))
	}
	if l.target.Hidden { // no counter tells of stops by a quota that is not visible
		return int(l.stops)+sampled.HiddenStops(l.target, l.log) >= enoughStops
	}
	return l.stops >= enoughStops || stops == 0 && before < fewBefore
}

// throttled is how many periods of its quotas were throttled between two samples.
func throttled(was, is *sampled.Sample) (n uint64) {
	for i, now := range is.Counters {
		if now != nil && i < len(was.Counters) && was.Counters[i] != nil && now.ThrottledPeriods > was.Counters[i].ThrottledPeriods {
			n += now.ThrottledPeriods - was.Counters[i].ThrottledPeriods
		}
	}
	return n
}

// found is the result.
func (l *look) found(t sampled.Target) Found {
	var hostUsed *time.Duration
	if !l.unknown {
		hostUsed = &l.hostUsed
	}
	f := Found{Figures: l.analysis.Finish(hostUsed), Ended: l.ended, CPUsAllowed: t.CPUsAllowed, Samples: l.analysis.Samples(),
		Threads: l.most.threads, Cost: ownCPU(), Took: time.Since(l.start)}
	f.LongFull, f.LongAll = l.analysis.Long()
	if l.group.host != nil {
		if after, err := cgroup.Levels(l.group.host, l.group.at.Path); err == nil {
			f.LimitChanges = observe.CompareLimits(l.group.levels, after)
		}
		share := f.Figures.Window.Seconds() / max(f.Took.Seconds(), 1e-9)
		for path, used := range l.group.siblings() {
			if was, ok := l.beside[path]; ok && used > was {
				f.Figures.Siblings = append(f.Figures.Siblings, diagnose.SampledSibling{Path: path,
					Used: time.Duration(share * float64(used-was))})
			}
		}
	}
	if n := l.analysis.Hidden(); n > 0 {
		l.notes = append(l.notes, fmt.Sprintf("%s by a quota that is not visible: no counter tells them; all threads waited, and got on at "+
			"one moment of a period", text.CountOf(n, "stop", "stops")))
	}
	if l.leftOut > 0 {
		l.notes = append(l.notes, fmt.Sprintf("threads: %d or more were not read; %d at once are followed", l.leftOut, MaxThreads))
		if s := f.Figures.Stopped; s != nil && *s == 0 && l.stops > 0 { // who waited is among the others
			f.Figures.Stopped = nil
			l.notes = append(l.notes, "for how long it was stopped: no thread that was followed waited for a quota")
		}
	}
	if l.threads.refused > 0 {
		l.notes = append(l.notes, fmt.Sprintf("threads of %d of its processes: /proc does not show them to this user", l.threads.refused))
	}
	f.Figures.NotMeasured = slices.Concat(l.notes, f.Figures.NotMeasured)
	return f
}
