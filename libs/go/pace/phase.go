package pace

import "time"

// Step is by how many a counter of struct cfs_bandwidth, which has 32 bits, went on from one reading to the next; below 0: it went back, as
// that of another cgroup. After 2^32-1 comes 0.
func Step(before, now uint64) int32 { return int32(now - before) }

// Sample is a reading of nr_periods. From and To are the times before and after it was read.
type Sample struct {
	From, To time.Duration
	Periods  uint64
	// Resumed: the reading was to come earlier, and the kernel had stopped the process until a period began.
	Resumed bool
}

// Phase is what is known of when periods begin. The zero value knows nothing.
type Phase struct {
	period time.Duration
	// The beginning of one period lies in (from, from+width]. width 0: nothing is known.
	from, width time.Duration
	last        Sample
	sampled     bool
	// resumes are how many of the bounds ended a stop.
	resumes int
}

// enoughResumes is how many readings right after a stop are enough. Each may come late, because other threads run
// first: the earliest counts.
const enoughResumes = 4

// exact is the width of the bounds that is enough, as a part of the period.
const exact = 64

// Restart forgets what was learnt: the limit was written.
func (p *Phase) Restart(period time.Duration) { *p = Phase{period: period} }

// Known reports whether the beginning is known well enough to pace by.
func (p *Phase) Known() bool { return p.width > 0 && p.width <= p.period/exact }

// Begin is when the period that contains a time began. Call it only if the phase is [Phase.Known].
func (p *Phase) Begin(at time.Duration) time.Duration {
	begin := p.from + p.width
	return begin + floor(at-begin, p.period)*p.period
}

// floor is a / b, rounded down also below 0.
func floor(a, b time.Duration) time.Duration {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Add learns from a sample. Readings that are a period apart or more, or whose clock went back, say nothing. Bounds that
// contradict what is known mean that the phase is another: it is learnt again.
//
// A process that is stopped to the end of each period can read nothing shortly before a period begins, so that the lower bound stays
// far off. But it runs again when the period begins: the earliest of some such readings is the beginning.
func (p *Phase) Add(s Sample) {
	before, ok := p.last, p.sampled
	p.last, p.sampled = s, true
	if !ok || p.period <= 0 || Step(before.Periods, s.Periods) != 1 || s.To <= before.From || s.From < before.To ||
		s.To-before.From >= p.period {
		return
	}
	from, width := before.From, s.To-before.From
	if p.width == 0 {
		p.from, p.width = from, width
		p.resume(s)
		return
	}
	// The new bounds are moved by whole periods to where they begin after the known ones, or to one period before that.
	from -= floor(from-p.from, p.period) * p.period
	low, high := from, min(from+width, p.from+p.width)
	if l, h := max(from-p.period, p.from), min(from-p.period+width, p.from+p.width); h-l > high-low {
		low, high = l, h
	}
	if high <= low {
		low, high, p.resumes = before.From, s.To, 0
	}
	p.from, p.width = low, high-low
	p.resume(s)
}

// resume counts a reading right after a stop, and takes the upper bound for the beginning when there are enough.
func (p *Phase) resume(s Sample) {
	if !s.Resumed {
		return
	}
	if p.resumes++; p.resumes >= enoughResumes && p.width > p.period/exact {
		p.from, p.width = p.from+p.width-p.period/exact, p.period/exact
	}
}

// Next is when to read the counter again, after a time: at the lower bound, the middle and the upper bound of where a period
// may begin, so that one step of the counter halves the bounds; and far from there, where a step says that they are wrong.
func (p *Phase) Next(after time.Duration) time.Duration {
	if p.width == 0 {
		return after + p.period/4
	}
	next := after + p.period
	for _, at := range [...]time.Duration{p.from, p.from + p.width/2, p.from + p.width, p.from + p.period/2} {
		// The first such moment after the given one.
		at += (floor(after-at, p.period) + 1) * p.period
		next = min(next, at)
	}
	return next
}
