package periodmodel

import (
	"math"
	"slices"
	"time"
)

// Point is what a limit does to a container.
type Point struct {
	// Stopped is for how long the quota stops it in all. Least does not look at it.
	Stopped time.Duration
	// StoppedShare is the share of its time to work in which the quota stops it. ThrottledShare is of all periods.
	StoppedShare, ThrottledShare float64
	// Delay is the 99th percentile of how much later work is done, in the worst of the rows.
	Delay time.Duration
}

// Curve is what candidate limits do to one container, over all its rows.
type Curve struct {
	// from is the largest of the rows' From, counted from Lowest: no limit below it serves the demand.
	from int
	// Candidates are the sums of the rows', by step, without gaps. Of Delay and BurstDelay they have the largest.
	Candidates []Candidate
	// Long are the rows' by period, for as much of the time as is known of each.
	Long []Long
	// Busy is time in which a thread ran, or would have.
	Busy time.Duration
	// Periods are those of the rows, idle ones too.
	Periods float64
}

// Off is by which part a least limit may be off, for a container with so large a stopped share at its limit of now.
// docs/results/fleet.md has in how many cases it was not: in nine of ten, where there was more than a single stop.
func Off(stoppedShare float64) float64 {
	if stoppedShare > 0.02 {
		return 0.5 // what came while it was held back is told less well
	}
	return 0.15
}

// Add adds a row's outcome.
func (c *Curve) Add(o Outcome) {
	c.from = max(c.from, o.From-Lowest)
	for _, more := range o.Candidates {
		i, there := slices.BinarySearchFunc(c.Candidates, more.Step, func(a Candidate, step int) int { return a.Step - step })
		if !there {
			c.Candidates = slices.Insert(c.Candidates, i, more)
			continue
		}
		to := &c.Candidates[i]
		to.Stopped, to.Throttled, to.Delay = to.Stopped+more.Stopped, to.Throttled+more.Throttled, max(to.Delay, more.Delay)
		to.BurstStopped, to.BurstDelay = to.BurstStopped+more.BurstStopped, max(to.BurstDelay, more.BurstDelay)
	}
	for _, more := range o.Long {
		i := slices.IndexFunc(c.Long, func(l Long) bool { return l.Period == more.Period })
		if i < 0 {
			i, c.Long = len(c.Long), append(c.Long, Long{Period: more.Period, From: Lowest})
		}
		c.Long[i].add(more)
	}
}

func (l *Long) add(more Long) {
	l.Known, l.From = l.Known+more.Known, max(l.From, more.From)
	for _, b := range more.Bursts {
		if i, there := l.find(b.Step); there {
			l.Bursts[i].Stopped, l.Bursts[i].Delay = l.Bursts[i].Stopped+b.Stopped, max(l.Bursts[i].Delay, b.Delay)
		} else {
			l.Bursts = slices.Insert(l.Bursts, i, b)
		}
	}
}

func (l *Long) find(step int) (int, bool) {
	return slices.BinarySearchFunc(l.Bursts, step, func(b Burst, step int) int { return b.Step - step })
}

// Setting is what is kept with a limit. The zero value is nothing.
type Setting struct {
	// Burst is of one quota.
	Burst bool
	// Period is a longer one, of those in Curve.Long; 0: the period that the limit has. A longer one is known with a burst.
	Period time.Duration
}

// OwnBurst is a burst in the period that the limit has.
var OwnBurst = Setting{Burst: true}

// long is a longer period; nil: nothing is known of it.
func (c *Curve) long(period time.Duration) *Long {
	if i := slices.IndexFunc(c.Long, func(l Long) bool { return l.Period == period }); i >= 0 {
		return &c.Long[i]
	}
	return nil
}

// lowest is the least step that serves the demand; above Highest, where that is not known.
func (c *Curve) lowest(with Setting) int {
	if with.Period == 0 {
		return Lowest + c.from
	}
	if l := c.long(with.Period); l != nil && with.Burst {
		return l.From
	}
	return Highest + 1
}

// step is what one step does. ok is false for one that does not serve the demand, and for a setting of which nothing is known.
func (c *Curve) step(step int, with Setting) (p Point, ok bool) {
	if step < c.lowest(with) {
		return Point{}, false
	}
	if with.Period > 0 {
		l := c.long(with.Period)
		if i, there := l.find(step); there {
			p.Stopped, p.Delay = l.Bursts[i].Stopped, l.Bursts[i].Delay
		}
		p.StoppedShare = c.share(p.Stopped)
		return p, true
	}
	i, there := slices.BinarySearchFunc(c.Candidates, step, func(a Candidate, step int) int { return a.Step - step })
	if !there {
		return Point{}, true // no row has it: it would have stopped nothing
	}
	candidate, stopped := c.Candidates[i], c.Candidates[i].Stopped
	p.Delay = candidate.Delay
	if with.Burst {
		stopped, p.Delay = candidate.BurstStopped, candidate.BurstDelay
	} else if c.Periods > 0 {
		p.ThrottledShare = float64(candidate.Throttled) / c.Periods
	}
	p.Stopped, p.StoppedShare = stopped, c.share(stopped)
	return p, true
}

// share is that of the time to work.
func (c *Curve) share(stopped time.Duration) float64 {
	if work := c.Busy + stopped; work > 0 {
		return float64(stopped) / float64(work)
	}
	return 0
}

// At is what a limit does, between the candidates beside it. ok is false for a limit that does not serve the demand.
// ThrottledShare is 0 with burst: rows do not have it.
func (c *Curve) At(limitCPUs float64, with Setting) (p Point, ok bool) {
	step, part := beside(limitCPUs)
	above, ok := c.step(step, with)
	if !ok {
		return Point{}, false
	}
	below, ok := c.step(step-1, with)
	if !ok || part == 1 {
		return above, true // at least that
	}
	mix := func(a, b float64) float64 { return a + (b-a)*part }
	return Point{time.Duration(mix(float64(below.Stopped), float64(above.Stopped))),
		mix(below.StoppedShare, above.StoppedShare), mix(below.ThrottledShare, above.ThrottledShare),
		time.Duration(mix(float64(below.Delay), float64(above.Delay)))}, true
}

// beside is the candidate at or above a limit, and how far above the one below it the limit is, from 0 to 1.
func beside(limitCPUs float64) (step int, part float64) {
	place := max(math.Log2(limitCPUs)*PerDoubling, Lowest)
	step = int(math.Ceil(place))
	return step, 1 - (float64(step) - place)
}

// Least is the least limit that does no more than may, in CPUs. A limit as low as the lowest candidate is told as that. A setting of
// which nothing is known, or that serves the demand with no candidate, is told as more than the highest.
func (c *Curve) Least(may Point, with Setting) float64 {
	fits := func(p Point) bool { return p.StoppedShare <= may.StoppedShare && p.Delay <= may.Delay }
	step := c.lowest(with)
	var above Point
	for ; ; step++ {
		if above, _ = c.step(step, with); fits(above) || step >= Highest {
			break
		}
	}
	below, ok := c.step(step-1, with)
	if !ok || step == Lowest {
		return CPUs(step)
	}
	// Between the two by the stopped share, which falls by the same factor from step to step, and by the delay: the later
	// of both.
	part := 0.0
	if below.StoppedShare > may.StoppedShare {
		least := may.StoppedShare / 8 // 0 is taken as little
		if from, to := below.StoppedShare, max(above.StoppedShare, least); from > to && to > 0 {
			part = math.Log(from/may.StoppedShare) / math.Log(from/to)
		} else {
			part = 1
		}
	}
	if below.Delay > may.Delay {
		part = max(part, float64(below.Delay-may.Delay)/float64(below.Delay-above.Delay))
	}
	return math.Exp2((float64(step-1) + min(1, part)) / PerDoubling)
}
