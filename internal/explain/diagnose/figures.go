package diagnose

import (
	"cmp"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// figures are the input of the causes. Times are nanoseconds.
type figures struct {
	window   int64
	measured bool // stopped time is measured
	// limitUnknown says that no limit was read.
	limitUnknown bool
	target       string
	path         string // of its cgroup
	kernel       string
	schedExt     string
	// slicesExpire comes from the kernel's type information; nil: unknown.
	slicesExpire *bool

	// The effective limit in CPUs, 0: none. binding is the level that holds back; nil: there is no quota.
	limit           float64
	binding         *level
	ownQuota        bool // binding is the container's own level, or as good as that: see spendsAlone
	quota, period   int64
	allowed, online int // CPUs; 0: unknown

	periods, throttledPeriods *uint64
	throttledRate             float64 // per second
	sums                      periodSums

	meanWidth, meanWanted float64
	widest, mostWanted    int
	cpu                   int64
	above                 int64   // longest time that wanted stayed above the limit
	below                 float64 // share of the window with wanted at or below the limit
	ownLimit              float64 // of the container alone, in CPUs; 0: none
	ownLevel              *level  // that has it; nil: there is none
	belowOwn              float64 // share of the window with wanted at or below ownLimit
	allowedWaiting        int64   // thread time of waiting for CPUs that the limit would have allowed
	stopped               int64
	stoppedIntervals      int
	ownStopped            int64 // without that by cgroups that the recording does not list, as ancestorStopped
	ancestorStopped       int64
	insideStopped         int64  // by quotas of cgroups in it
	innermost             *level // of these the one that stopped most; nil: none did
	realtime              bool   // it has real-time threads
	rtLimit               *level // the level that lets them run least; nil: none is known
	frozen                bool   // from the beginning to the end
	longestIdleHeld       int64  // longest time in which the binding level held threads back and none ran
	longIdleHeld          int64  // sum of such times of at least its period

	waiting    waits
	behind     wallTimes
	answered   int     // requests
	pools      []*pool // most CPU time in throttled periods first, then most CPU time
	track      int     // index for pool.throttled
	neighbours []NeighbourUse
	blameless  int64     // thread time of waiting while clients of the container or the recorder held the CPUs
	ancestor   *level    // the one that held it back longest; nil: none did
	siblings   []sibling // under that
	// What was not measured, so that causes which need it stay possible: what siblings used, wanted, width, and delays.
	siblingsUnknown, wantedUnknown, widthUnknown, delaysUnknown bool
	kernelTime                                                  float64 // share of the container's CPU time in the kernel; -1: unknown
	lost                                                        uint64
	costPool                                                    int
}

// sibling is another container below the same ancestor.
type sibling struct {
	name string
	cpu  int64
}

func (a *Analysis) figures(f *recording.Footer) *figures {
	lead := a.bindingTrack()
	recorded := &figures{
		window: a.now, measured: a.h.Features.Mark != "" || a.stopped > 0, target: a.h.Target.Name, path: a.levels.all[0].Path,
		kernel: a.h.Host.Kernel, schedExt: a.h.Host.SchedExt, slicesExpire: a.h.Features.SlicesExpire,
		allowed: a.h.CPUsAllowed.Size(), online: a.h.Host.CPUs.Size(), sums: lead.sums, track: lead.index,
		meanWidth: a.width.mean(), meanWanted: a.wanted.mean(), widest: a.width.most(), mostWanted: a.wanted.most(),
		cpu: a.cpuTime, above: a.aboveLimit.longest, stopped: a.stopped,
		stoppedIntervals: a.stoppedIntervals.count,
		ownStopped:       a.levels.ownTime, ancestorStopped: a.levels.ancestors,
		insideStopped: a.levels.insideTime, frozen: a.h.Target.Frozen && f.Frozen,
		neighbours: a.owners.neighbours(f, a.now), blameless: a.owners.blamelessWaited(), kernelTime: -1, lost: max(f.LostEvents, a.lost),
	}
	if own, ok := a.levels.all[0].Limit(); ok {
		recorded.ownLimit, recorded.ownLevel, recorded.belowOwn = own, &a.levels.all[0], a.wantedWithin(own)
	}
	recorded.behind = wallTimes{others: a.behindOthers(), own: a.behind.own}
	recorded.allowedWaiting = a.allowedWaiting
	if a.limit != nil {
		recorded.limit = *a.limit
		recorded.below = a.wantedWithin(recorded.limit)
	}
	if i := a.levels.binding(); i >= 0 {
		recorded.binding = &a.levels.all[i]
		recorded.longestIdleHeld, recorded.longIdleHeld = recorded.binding.idleHeld.longest, recorded.binding.idleHeld.long
		if recorded.binding.QuotaNS != nil {
			recorded.quota, recorded.period = *recorded.binding.QuotaNS, recorded.binding.PeriodNS
		}
		a.countPeriods(f, recorded)
	}
	for i := range a.levels.all {
		l := &a.levels.all[i]
		if l.Inside && l.stopped > 0 && (recorded.innermost == nil || l.stopped > recorded.innermost.stopped) {
			recorded.innermost = l
		}
		if l.RTRuntimeNS != nil && (recorded.rtLimit == nil ||
			*l.RTRuntimeNS*recorded.rtLimit.RTPeriodNS < *recorded.rtLimit.RTRuntimeNS*l.RTPeriodNS) {
			recorded.rtLimit = l
		}
	}
	for _, p := range a.pools.all {
		recorded.realtime = recorded.realtime || p.realtime
		recorded.answered += p.answered
		for r, d := range p.waiting {
			recorded.waiting[r] += d
		}
		if p.any() {
			recorded.pools = append(recorded.pools, p)
		}
	}
	sortBySpent(recorded.pools, recorded.track)
	recorded.ownQuota = recorded.binding != nil && recorded.binding.Own
	if recorded.ancestor = a.levels.longestAncestor(); recorded.ancestor != nil {
		recorded.siblings = a.siblings(f, recorded.ancestor.Path)
		recorded.takeAncestor()
	}
	user, kernel := int64(0), int64(0)
	for _, t := range f.Threads {
		user += max(0, t.UserNS)
		kernel += max(0, t.KernelNS)
	}
	if user+kernel > 0 {
		recorded.kernelTime = float64(kernel) / float64(user+kernel)
	}
	return recorded
}

// sortBySpent sorts pools by what they spent in throttled periods, then by their CPU time.
func sortBySpent(pools []*pool, track int) {
	slices.SortStableFunc(pools, func(x, y *pool) int {
		return cmp.Or(cmp.Compare(y.throttled[track], x.throttled[track]), cmp.Compare(y.cpu, x.cpu),
			strings.Compare(x.key.name, y.key.name), strings.Compare(x.key.process, y.key.process))
	})
}

// takeAncestor counts an ancestor's quota as the container's own where that is as good as its own.
func (recorded *figures) takeAncestor() {
	if recorded.spendsAlone() {
		recorded.ownQuota = recorded.ownQuota || recorded.binding == recorded.ancestor
		recorded.ownStopped, recorded.ancestorStopped = min(recorded.ownStopped+recorded.ancestorStopped, recorded.stopped), 0
	}
}

// wantedWithin is the share of the time so far with wanted at or below a number of CPUs.
func (a *Analysis) wantedWithin(cpus float64) (share float64) {
	for i, d := range a.wanted.time {
		if float64(i) <= cpus && a.now > 0 {
			share += float64(d) / float64(a.now)
		}
	}
	return share
}

// countPeriods takes the periods from the container's counters if its own quota binds, else from the level's
// timer.
func (a *Analysis) countPeriods(f *recording.Footer, recorded *figures) {
	l := recorded.binding
	switch {
	case l.Unlisted: // whose periods are not in the events
	case l == &a.levels.all[0] && f.Periods != nil && f.ThrottledPeriods != nil:
		recorded.periods, recorded.throttledPeriods = f.Periods, f.ThrottledPeriods
	case a.h.Features.Periods || l.expiries > 0:
		recorded.periods, recorded.throttledPeriods = &l.expiries, &l.throttled
	}
	if recorded.throttledPeriods != nil && a.now > 0 {
		recorded.throttledRate = float64(*recorded.throttledPeriods) / (float64(a.now) / 1e9)
	}
}

// aloneShare is the share of a container's CPU time that others below its ancestor may use where it spends the ancestor's quota alone.
const aloneShare = 0.05

// spendsAlone reports whether the quota of an ancestor is as good as the container's own: no less than that, and spent by nobody else.
// The kubelet gives a pod the quota of its only container, and which of the two stops it first is chance. Of a quota that is more than
// the container's own lets it use, others spent a part, even if no recording tells of them.
func (recorded *figures) spendsAlone() bool {
	l, own := recorded.ancestor, recorded.ownLevel
	limit, ok := l.Limit()
	return ok && own != nil && limit >= recorded.ownLimit && float64(*l.QuotaNS) <= own.most(l.PeriodNS) &&
		float64(recorded.siblingsUsed()) <= aloneShare*float64(recorded.cpu)
}

// siblingsUsed is the CPU time of the siblings on all CPUs.
func (recorded *figures) siblingsUsed() (all int64) {
	for _, s := range recorded.siblings {
		all += s.cpu
	}
	return all
}

// siblings returns the neighbours below an ancestor, most CPU time first: wherever that was, it is the ancestor's quota.
func (a *Analysis) siblings(f *recording.Footer, ancestor string) []sibling {
	var all []sibling
	for _, n := range f.Neighbours {
		if i, ok := a.owners.number[n.Owner]; ok && (ancestor == "/" || strings.HasPrefix(n.Path, strings.TrimSuffix(ancestor, "/")+"/")) {
			o := a.owners.all[i]
			all = append(all, sibling{name: o.name, cpu: o.onAll})
		}
	}
	slices.SortStableFunc(all, func(x, y sibling) int { return cmp.Compare(y.cpu, x.cpu) })
	return all
}

// use is the mean CPU use as a share of the effective limit, or 0 without a limit.
func (recorded *figures) use() float64 {
	if recorded.limit <= 0 {
		return 0
	}
	return recorded.meanWidth / recorded.limit
}

// excess is the share of the CPU time in throttled periods beyond ceil(limit) CPUs at once.
func (recorded *figures) excess() float64 {
	if recorded.sums.used <= 0 {
		return 0
	}
	return float64(recorded.sums.excess) / float64(recorded.sums.used)
}

// demand is the thread time of running and waiting.
func (recorded *figures) demand() int64 {
	return recorded.cpu + recorded.waiting.sum()
}

// quotaWaiting is the thread time for which quotas held threads back.
func (recorded *figures) quotaWaiting() int64 {
	return recorded.waiting[byOwnQuota] + recorded.waiting[byAncestor]
}

// Negligible is the share of the window below which stopped time or waiting is no finding: of a hundred requests it
// reaches one.
const Negligible = 0.01

// throttled reports whether quotas stopped the container for a time that matters.
func (recorded *figures) throttled() bool {
	return recorded.stopped > 0 && float64(recorded.stopped) >= Negligible*float64(recorded.window)
}

// spender is the pool that spent most in throttled periods, or nil without any pool.
func (recorded *figures) spender() *pool {
	if len(recorded.pools) == 0 {
		return nil
	}
	return recorded.pools[0]
}
