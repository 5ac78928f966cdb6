package sampled

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// pool has the sums of one pool.
type pool struct {
	key                           poolKey
	threads                       int
	beside                        bool // a thread that is no main thread was in it
	serves                        bool // a process of it holds clients' connections, or may
	cpu, throttled, most          time.Duration
	large, widest, holds          int
	stopped                       time.Duration
	byOwnQuota, byAncestor, byCPU time.Duration
	inRow                         time.Duration // CPU time of the period that goes on
	byThread                      []time.Duration
	waited                        stats.Lengths
	// now and ranNow are the threads that ran in the step that is counted, and their CPU time.
	now    int
	ranNow time.Duration
}

// sums are those of all samples.
type sums struct {
	window, used, stopped   time.Duration
	width, wanted           []time.Duration
	widest                  int
	above, aboveNow, below  time.Duration
	belowOwn                time.Duration
	byLevel                 map[int]time.Duration
	stops                   int
	longestStop             time.Duration
	throttled               diagnose.SampledPeriods
	queuedWall, allowedWait time.Duration
	long                    longPeriods
	// queued is the thread time of waiting for CPUs, by how much of the allowed CPUs the container used meanwhile.
	queued [shares + 1]time.Duration
}

// shares is how many shares of the allowed CPUs are told apart.
const shares = 16

// LongestPeriod is the longest period that the kernel takes (max_cfs_quota_period).
const LongestPeriod = time.Second

// longPeriods counts stretches of LongestPeriod, and those in which the limit was used up.
type longPeriods struct {
	all, full  int
	used, time time.Duration
}

func (p *longPeriods) add(used, length time.Duration, limit float64) {
	p.used, p.time = p.used+used, p.time+length
	if p.time < LongestPeriod {
		return
	}
	p.all++
	if limit > 0 && float64(p.used) >= stats.UsedUp*limit*float64(p.time) {
		p.full++
	}
	p.used, p.time = 0, 0
}

// row is a period of the leading quota.
type row struct {
	partial                     bool // it began before the episode
	used, excess, wide, stopped time.Duration
	// edge is the CPU time of the sample in which the period began: a part of it is this period's.
	edge time.Duration
	busy []busy
}

// busy is a stretch with CPU time.
type busy struct{ used, time time.Duration }

// maxCounted bounds the histograms.
const maxCounted = 4096

// count adds a step to the sums.
func (a *Analysis) count(st *step) {
	length, stopped := st.to-st.from, a.stoppedIn(st)
	free := max(length-stopped, length/10) // in which something could run
	used := a.used(st)
	width := a.onCPUs(used, free)
	a.eachPool(st, func(p *pool) {
		most := min(p.now, int(math.Ceil(a.onCPUs(p.ranNow, free)-wider)))
		p.widest = max(p.widest, max(1, most))
		a.sums.widest = max(a.sums.widest, p.widest)
	})
	a.sums.window += length
	a.sums.used += used
	a.sums.width = spreadOver(a.sums.width, width, free)
	a.sums.width = spreadOver(a.sums.width, 0, length-free)
	a.sums.widest = max(a.sums.widest, int(math.Ceil(width-wider)))
	wanted := float64(used+st.queued+st.held) / float64(length)
	a.sums.wanted = spreadOver(a.sums.wanted, wanted, length)
	if a.lead >= 0 && wanted > a.limit {
		a.sums.aboveNow += length
		a.sums.above = max(a.sums.above, a.sums.aboveNow)
	} else {
		a.sums.aboveNow = 0
		a.sums.below += length
	}
	if own, ok := a.ownLimit(); !ok || wanted <= own {
		a.sums.belowOwn += length
	}
	a.sums.long.add(used, length, a.limit)
	a.queue(st, width, free)
	a.addToRow(st, used, free, stopped)
}

// onCPUs is the mean width of so much CPU time in a time: no more than there are CPUs.
func (a *Analysis) onCPUs(used, time time.Duration) float64 {
	width := float64(used) / float64(time)
	if allowed := a.target.CPUsAllowed; allowed > 0 {
		return min(width, float64(allowed))
	}
	return width
}

// wider is by how much of a CPU the mean width of a sample may be above a whole number without another CPU.
const wider = 0.3

// ownLimit is the container's own, in CPUs.
func (a *Analysis) ownLimit() (float64, bool) {
	if len(a.quotas) == 0 || a.quotas[0].quota == 0 {
		return 0, false
	}
	return float64(a.quotas[0].quota) / float64(a.quotas[0].period), true
}

// eachPool calls f for each pool that ran in a step, with its ranNow and now set.
func (a *Analysis) eachPool(st *step, f func(*pool)) {
	for _, g := range st.gains {
		p := a.pools[g.pool]
		p.ranNow += g.ran
		if g.ran > 0 && !g.late {
			p.now++
		}
	}
	for _, g := range st.gains {
		p := a.pools[g.pool]
		if p.ranNow > 0 {
			f(p)
		}
		p.ranNow, p.now = 0, 0
	}
}

// queue counts what waited for CPUs.
func (a *Analysis) queue(st *step, width float64, free time.Duration) {
	for _, q := range st.byPool {
		a.pools[q.pool].byCPU += q.waited
	}
	if st.queued <= 0 {
		return
	}
	if allowed := a.target.CPUsAllowed; allowed > 0 {
		a.sums.queued[int(shares*min(1, width/float64(allowed)))] += st.queued
	}
	a.sums.queuedWall += min(st.queued, st.to-st.from)
	fills := float64(a.target.CPUsAllowed)
	if a.lead >= 0 {
		fills = math.Ceil(a.limit - 1e-9)
	}
	a.sums.allowedWait += min(st.queued, time.Duration(max(0, fills-width)*float64(free)))
}

// addToRow adds a step to its period.
func (a *Analysis) addToRow(st *step, used, free, stopped time.Duration) {
	if a.lead < 0 {
		return
	}
	r := &a.row
	if st.ended && st.stop != nil { // what ran in it ran after the stop
		r.stopped += stopped
		a.close(st)
		a.ran(st, used, free)
		return
	}
	a.ran(st, used, free)
	r.stopped += stopped
	if st.ended {
		a.close(st)
		a.row.edge = used
	}
}

// ran adds the CPU time of a step to the period.
func (a *Analysis) ran(st *step, used, free time.Duration) {
	r := &a.row
	r.used += used
	if used > 0 {
		r.busy = append(r.busy, busy{used, free})
	}
	fills := time.Duration(math.Ceil(a.limit-1e-9) * float64(free))
	if used > fills {
		r.wide += used - fills
	} else {
		r.settleWide()
	}
	a.eachPool(st, func(p *pool) { p.inRow += p.ranNow })
}

// settleWide ends a stretch of samples that were wider than the limit. A tick of it may be of the sample before.
func (r *row) settleWide() {
	r.excess += max(0, r.wide-tick)
	r.wide = 0
}

// close ends a period.
func (a *Analysis) close(st *step) {
	r := a.row
	r.settleWide()
	quota := a.quotas[a.lead].quota
	for _, p := range a.pools {
		if st.throttled {
			p.throttled += p.inRow
			if float64(p.inRow) > diagnose.SelfMost*float64(quota) {
				p.large++
			}
		}
		p.most = max(p.most, p.inRow)
		p.inRow = 0
	}
	if st.throttled && !r.partial {
		t := &a.sums.throttled
		t.Periods++
		t.Used += min(r.used+r.edge, max(r.used, quota))
		t.Excess += r.excess
		t.Stopped += r.stopped
		t.Spent += r.used
		t.SpentIn += a.spentIn(r)
	}
	a.row = row{}
}

// spentIn is the wall time in which a period's CPU time was used. The first and the last sample of it are only partly filled.
func (a *Analysis) spentIn(r row) (sum time.Duration) {
	widest := 0.0
	for _, b := range r.busy {
		widest = max(widest, a.onCPUs(b.used, b.time))
	}
	for _, b := range r.busy {
		sum += max(min(b.time, time.Duration(float64(b.used)/widest)), a.leastTime(b.used))
	}
	return sum
}

// leastTime is the time in which so much CPU time can be used.
func (a *Analysis) leastTime(used time.Duration) time.Duration {
	if allowed := a.target.CPUsAllowed; allowed > 0 {
		return used / time.Duration(allowed)
	}
	return 0
}

// end adds a stop to the sums.
func (a *Analysis) end(s *stop) {
	length := s.to - s.from
	if a.sums.byLevel == nil {
		a.sums.byLevel = map[int]time.Duration{}
	}
	a.sums.stopped += length
	a.sums.byLevel[s.level] += length
	a.sums.stops++
	a.sums.longestStop = max(a.sums.longestStop, length)
	for _, h := range s.pools {
		if h.time >= leastHeld {
			p := a.pools[h.pool]
			p.stopped += min(h.time, length)
			p.holds++
		}
	}
}

// spreadOver adds a time with a mean that lies between two whole numbers.
func spreadOver(all []time.Duration, mean float64, d time.Duration) []time.Duration {
	if d <= 0 || !(mean >= 0) {
		return all
	}
	low := int(min(mean, maxCounted-1))
	upper := time.Duration((min(mean, maxCounted) - float64(low)) * float64(d))
	for len(all) <= low+1 {
		all = append(all, 0)
	}
	all[low] += d - upper
	all[low+1] += upper
	return all
}
