package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Sampled is what samples of counters and of threads' own files tell of a container: the part of a recording's figures that
// they know. [Sampled.Explain] judges it by the rules for recordings. What it has no field for is not known: requests, wake-ups,
// delays, and who held a CPU.
type Sampled struct {
	Target, Path, Kernel string
	Start                time.Time
	Window               time.Duration
	// Levels are the container's own cgroup and its ancestors, nearest first. LimitUnknown: their limits could not be read.
	Levels       []SampledLevel
	LimitUnknown bool
	// CPUsAllowed and CPUsOnline count CPUs; 0: not known.
	CPUsAllowed, CPUsOnline int
	// Use is the mean number of CPUs that it used from the first to the last sample, also where samples were apart; nil: not known.
	Use *float64
	// Used is the container's CPU time in Window, Siblings that of other cgroups below its ancestor with a quota; nil: not known.
	Used     time.Duration
	Siblings []SampledSibling
	// Stopped is the wall time in which a quota held back a runnable thread, in so many Stops; nil: not known. OwnStopped and
	// AncestorStopped are the parts of it by whose quota that was.
	Stopped                     *time.Duration
	OwnStopped, AncestorStopped time.Duration
	Stops                       int
	LongestStop                 time.Duration
	// Width[i] is how long i CPUs were in use, Wanted[i] how long i threads ran or waited, in means of samples. Above is how
	// long wanted stayed above the limit at most; Below and BelowOwn are the shares of the window in which it was not above the
	// limit, and not above the container's own.
	Width, Wanted   []time.Duration
	Widest          int
	Above           time.Duration
	Below, BelowOwn float64
	// Throttled sums the periods of the binding level that ended throttled, from the first whole one on.
	Throttled SampledPeriods
	// AllowedWaiting is the thread time of waiting for CPUs that the limit would have allowed. BehindOthers and BehindOwn are the
	// wall times in which a thread waited for a CPU behind others and behind the container's own threads.
	AllowedWaiting, BehindOthers, BehindOwn time.Duration
	// Divided says that waiting for CPUs is told apart by who held them; otherwise it is not known.
	Divided     bool
	Pools       []SampledPool
	NotMeasured []string
}

// SampledLevel is one cgroup with its limit. Counters is nil where its cpu.stat was not read.
type SampledLevel struct {
	recording.Level
	Counters *SampledCounters
}

// SampledCounters is what the counters of one cgroup gained, and the wall time for which its quota stopped the container.
type SampledCounters struct {
	Periods, ThrottledPeriods uint64
	Stopped                   time.Duration
}

// SampledSibling is another cgroup below an ancestor.
type SampledSibling struct {
	Path string
	Used time.Duration
}

// SampledPeriods are sums over periods that ended throttled.
type SampledPeriods struct {
	Periods int
	// Used is the CPU time in them, Excess the part of it from more CPUs at once than fill the quota. Spent is the CPU time
	// before the stops, SpentIn the wall time that it took, and Stopped that of the stops.
	Used, Excess, Spent, SpentIn, Stopped time.Duration
}

// SampledPool is what the threads of one pool did.
type SampledPool struct {
	Name, Process    string
	Threads, Working int
	Main             bool // it has no thread but main threads of processes
	// Helper: nobody waits for it itself. It works for another pool, or none of its processes holds a client's connection, while
	// others of the container do.
	Helper bool
	CPU    time.Duration
	// CPUThrottled is the part of CPU in throttled periods; Most that of the period with most of it, and Large the number of
	// throttled periods in which the pool used more than SelfMost of the quota.
	CPUThrottled, Most time.Duration
	Large              int
	Widest             int
	// Stopped is the wall time in which a quota held any of its threads back, in so many Holds.
	Stopped time.Duration
	Holds   int
	// ByOwnQuota, ByAncestor, ByOwnThreads and ByOthers are the thread time of waiting.
	ByOwnQuota, ByAncestor, ByOwnThreads, ByOthers time.Duration
	// Waited is what its runs waited for CPUs, without quotas: the mean of all runs between two samples counts for each.
	Waited stats.Lengths
}

// SelfMost is the share of the quota above which a pool uses a period for itself.
const SelfMost = selfMost

// Explain judges the samples.
func (s Sampled) Explain() Explanation {
	recorded := s.figures()
	e := Explanation{
		Target: cmp.Or(s.Target, s.Path), Start: s.Start, Window: s.Window, Periods: recorded.periods,
		ThrottledPeriods: recorded.throttledPeriods, MeanWidth: &recorded.meanWidth, Stopped: s.Stopped,
		Width: bars(s.Width), Wanted: bars(s.Wanted), LimitUnknown: s.LimitUnknown, NotMeasured: slices.Clone(s.NotMeasured),
	}
	if recorded.limit > 0 {
		e.LimitCPUs = new(recorded.limit)
	}
	if s.Stopped != nil {
		e.StoppedIntervals = new(s.Stops)
	}
	for _, l := range s.Levels {
		e.Levels = append(e.Levels, l.Level)
	}
	e.Pools, e.Waiting = s.uses(recorded), recorded.waiting.byReason(s.reasons())
	conclude(&e, recorded)
	if s.Stopped == nil && e.Cause == None { // a quota may have stopped it all the same
		e.Cause, e.Causes = "", nil
	}
	return e
}

// figures are those that the causes judge. What is not known has the value with which no cause rests on it.
func (s *Sampled) figures() *figures {
	recorded := &figures{
		window: int64(s.Window), measured: s.Stopped != nil, limitUnknown: s.LimitUnknown,
		target: s.Target, path: s.Path, kernel: s.Kernel,
		allowed: s.CPUsAllowed, online: s.CPUsOnline, meanWidth: s.Used.Seconds() / max(s.Window.Seconds(), 1e-9),
		widest: s.Widest, cpu: int64(s.Used), above: int64(s.Above), below: s.Below, belowOwn: s.BelowOwn,
		allowedWaiting: int64(s.AllowedWaiting), stoppedIntervals: s.Stops, ownStopped: int64(s.OwnStopped),
		ancestorStopped: int64(s.AncestorStopped), longestIdleHeld: int64(s.LongestStop), kernelTime: -1,
		behind: wallTimes{others: int64(s.BehindOthers), own: int64(s.BehindOwn)},
	}
	if s.Stopped != nil {
		recorded.stopped = int64(*s.Stopped)
	}
	if s.Use != nil {
		recorded.meanWidth = *s.Use
	}
	t := s.Throttled
	recorded.sums = periodSums{throttled: t.Periods, whole: t.Periods, used: int64(t.Used), excess: int64(t.Excess),
		spent: int64(t.Spent), spentIn: int64(t.SpentIn), stopped: int64(t.Stopped), intervals: t.Periods}
	wanted := timeHistogram{}
	for i, d := range s.Wanted {
		wanted.n = i
		wanted.add(int64(d))
	}
	recorded.meanWanted, recorded.mostWanted = wanted.mean(), wanted.most()
	s.setLevels(recorded)
	for i := range s.Pools {
		recorded.pools = append(recorded.pools, s.Pools[i].pool(i))
		for r, d := range recorded.pools[i].waiting {
			recorded.waiting[r] += d
		}
	}
	sortBySpent(recorded.pools, 0)
	return recorded
}

// setLevels fills in the limits, and whose quota stopped it.
func (s *Sampled) setLevels(recorded *figures) {
	levels := levels{}
	for i, l := range s.Levels {
		one := level{Level: schedule.Level{Level: l.Level, Own: i == 0}}
		if l.Counters != nil {
			one.stopped = int64(l.Counters.Stopped)
			one.expiries, one.throttled = l.Counters.Periods, l.Counters.ThrottledPeriods
		}
		levels.all = append(levels.all, one)
	}
	if len(levels.all) == 0 {
		return
	}
	if own, ok := levels.all[0].Limit(); ok {
		recorded.ownLimit, recorded.ownLevel = own, &levels.all[0]
	}
	if limit := levels.limit(); limit != nil {
		recorded.limit = *limit
	}
	at := Binding(s.Levels)
	if at < 0 {
		return
	}
	l := &levels.all[at]
	recorded.binding, recorded.ownQuota = l, l.Own
	if l.QuotaNS != nil {
		recorded.quota, recorded.period = *l.QuotaNS, l.PeriodNS
	}
	if c := s.Levels[at].Counters; c != nil {
		recorded.periods, recorded.throttledPeriods = &c.Periods, &c.ThrottledPeriods
		recorded.throttledRate = float64(c.ThrottledPeriods) / max(s.Window.Seconds(), 1e-9)
	}
	recorded.ancestor = levels.longestAncestor()
	recorded.siblingsUnknown = recorded.ancestor != nil && recorded.ancestor.Path == ""
	for _, other := range s.Siblings {
		recorded.siblings = append(recorded.siblings, sibling{name: other.Path, cpu: int64(other.Used)})
	}
	slices.SortStableFunc(recorded.siblings, func(x, y sibling) int { return cmp.Compare(y.cpu, x.cpu) })
	if recorded.ancestor != nil {
		recorded.takeAncestor()
	}
}

// Binding returns the level that stopped the container longest, and where none did the one with the least limit; -1: none has
// a limit.
func Binding(all []SampledLevel) int {
	best, least := -1, 0.0
	var longest time.Duration
	for i, l := range all {
		if l.Counters != nil && l.Counters.Stopped > longest {
			best, longest = i, l.Counters.Stopped
		}
	}
	for i := range all {
		l := schedule.Level{Level: all[i].Level}
		if cpus, ok := l.Limit(); ok && longest == 0 && (best < 0 || cpus < least) {
			best, least = i, cpus
		}
	}
	return best
}

// pool is one of figures.
func (p *SampledPool) pool(number int) *pool {
	all := &pool{key: poolKey{p.Process, p.Name}, number: number, threads: p.Threads, cpu: int64(p.CPU), widest: p.Widest,
		size: p.Threads, beside: !p.Main, helper: p.Helper, stopped: int64(p.Stopped), holds: p.Holds}
	all.throttled[0], all.most[0], all.large[0] = int64(p.CPUThrottled), int64(p.Most), p.Large
	all.waiting.add(byOwnQuota, int64(p.ByOwnQuota))
	all.waiting.add(byAncestor, int64(p.ByAncestor))
	all.waiting.add(byOwnThreads, int64(p.ByOwnThreads))
	all.waiting.add(byNeighbour, int64(p.ByOthers))
	for _, l := range p.Waited.All() {
		all.waited.addMany(int64(l.UpTo), l.Count)
	}
	return all
}

// reasons are those that samples measure.
func (s *Sampled) reasons() [reasons]bool {
	return [reasons]bool{byOwnQuota: s.Stopped != nil, byAncestor: s.Stopped != nil, byOwnThreads: s.Divided, byNeighbour: s.Divided}
}

// uses are the pools for views.
func (s *Sampled) uses(recorded *figures) []PoolUse {
	all := []PoolUse{}
	for _, p := range recorded.pools {
		u := p.use(0, recorded.binding != nil, s.reasons())
		u.Working = s.Pools[p.number].Working
		u.Runnable, u.RunnableP99 = 0, 0
		all = append(all, u)
	}
	slices.SortStableFunc(all, func(x, y PoolUse) int {
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), strings.Compare(x.Name, y.Name), strings.Compare(x.Process, y.Process))
	})
	return all
}

func bars(of []time.Duration) (all []Bar) {
	for i, d := range of {
		if d > 0 {
			all = append(all, Bar{CPUs: i, Time: d})
		}
	}
	return all
}
