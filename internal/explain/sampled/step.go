package sampled

import (
	"math"
	"slices"
	"time"
)

// step is the time between two samples.
type step struct {
	from, to  time.Duration
	used      time.Duration
	usedKnown bool
	gains     []gain
	ended     bool // a period of the leading quota did
	throttled bool // as one that was throttled
	stopBy    int  // the level of which a stop ended; -1: none
	stopped   time.Duration
	stop      *stop
	queued    time.Duration // thread time of waiting for CPUs
	held      time.Duration // thread time of waiting for quotas
	byPool    []queued
}

// gain is what a thread did in a step.
type gain struct {
	pool        int
	ran, waited time.Duration
	runs        uint64
	late        bool // a part of another gain, of the step after this one
}

// queued is what a pool's threads waited for CPUs.
type queued struct {
	pool   int
	waited time.Duration
}

// stop is a stretch in which a quota held threads back.
type stop struct {
	level    int
	from, to time.Duration
	pools    []held
}

// held is what a stop held a pool back: the thread that was longest.
type held struct {
	pool int
	time time.Duration
}

// leastHeld is what a thread waits at least for a quota to count as held back by it.
const leastHeld = time.Millisecond

// waits divides what threads waited until this step: for quotas, and for CPUs.
func (a *Analysis) waits(st *step) {
	if st.stopBy >= 0 {
		longest := time.Duration(0)
		for _, g := range st.gains {
			longest = max(longest, g.waited)
		}
		// Threads of ours may have waited on through earlier stops: a stop is not longer than the counter says.
		if length := min(longest, st.stopped, a.keep); length >= leastHeld {
			end := st.to - min(a.used(st), (st.to-st.from)/2)
			st.stop = &stop{level: st.stopBy, from: max(a.begun, end-length), to: end}
			if n := len(a.stops); n > 0 {
				st.stop.from = max(st.stop.from, a.stops[n-1].to)
			}
			a.stops = append(a.stops, st.stop)
		}
	}
	for _, g := range st.gains {
		if g.waited > 0 {
			a.spread(st, g)
		}
	}
}

// used is the CPU time of a step.
func (a *Analysis) used(st *step) (sum time.Duration) {
	if st.usedKnown {
		return st.used
	}
	for _, g := range st.gains {
		sum += g.ran
	}
	return sum
}

// spread divides one thread's waiting over the time before it.
func (a *Analysis) spread(st *step, g gain) {
	end := st.to - min(g.ran, st.to-st.from)
	if st.stop != nil {
		end = max(end, st.stop.to)
	}
	p, begin, left := a.pools[g.pool], end-g.waited, g.waited
	for _, s := range slices.Backward(a.stops) {
		part := min(overlap(begin, end, s.from, s.to), left)
		if part < min(leastHeld, (s.to-s.from)/2) {
			continue
		}
		left -= part
		if s.level == 0 {
			p.byOwnQuota += part
		} else {
			p.byAncestor += part
		}
		s.hold(g.pool, part)
		a.heldIn(max(begin, s.from), min(end, s.to), part)
	}
	if left <= 0 {
		return
	}
	if g.runs > 0 {
		p.waited.Add(max(time.Microsecond, left/time.Duration(g.runs)), int(min(g.runs, math.MaxInt32)))
	}
	rest := left
	for _, one := range slices.Backward(a.steps) {
		part := min(overlap(begin, end, one.from, one.to)-a.stoppedIn(one), rest)
		if one == st {
			part = min(max(part, min(rest, st.to-st.from-min(g.ran, st.to-st.from))), rest)
		}
		if part <= 0 {
			if one.to < begin {
				break
			}
			continue
		}
		rest -= part
		one.queue(g.pool, part)
	}
	if rest > 0 {
		st.queue(g.pool, rest)
	}
}

func (s *step) queue(pool int, waited time.Duration) {
	s.queued += waited
	for i := range s.byPool {
		if s.byPool[i].pool == pool {
			s.byPool[i].waited += waited
			return
		}
	}
	s.byPool = append(s.byPool, queued{pool, waited})
}

// heldIn adds held thread time to the steps of a stretch.
func (a *Analysis) heldIn(from, to, all time.Duration) {
	for _, one := range slices.Backward(a.steps) {
		if one.to <= from {
			return
		}
		one.held += min(overlap(from, to, one.from, one.to), all)
	}
}

// stoppedIn is the part of a step in which it was stopped.
func (a *Analysis) stoppedIn(st *step) (sum time.Duration) {
	for _, s := range slices.Backward(a.stops) {
		if s.to <= st.from {
			break
		}
		sum += overlap(st.from, st.to, s.from, s.to)
	}
	return min(sum, st.to-st.from)
}

// hold notes that a stop held a thread of a pool.
func (s *stop) hold(pool int, d time.Duration) {
	for i := range s.pools {
		if s.pools[i].pool == pool {
			s.pools[i].time = max(s.pools[i].time, d)
			return
		}
	}
	s.pools = append(s.pools, held{pool, d})
}

func overlap(from, to, otherFrom, otherTo time.Duration) time.Duration {
	return max(0, min(to, otherTo)-max(from, otherFrom))
}
