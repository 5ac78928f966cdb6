package requests

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// maxSegments bounds a timeline; what came before is Unseen.
const maxSegments = 2048

// path is a timeline under way, the last segment first.
type path struct {
	s        *Scan
	begin    int64
	segments []Segment
}

// timeline finds where the time of a connection's request went, up to now.
func (s *Scan) timeline(c *schedule.Connection, writer uint32) []Segment {
	p := &path{s: s, begin: c.BeginNS}
	seen := max(c.ReadNS, s.since)
	at, t := c.EndNS, s.threads[writer]
	for at > seen && t != nil && len(p.segments) < maxSegments {
		woke, ok := t.wake(seen, at)
		if !ok {
			p.states(t, seen, at, Ran)
			at = seen
			break
		}
		p.states(t, woke.at, at, Ran)
		at = woke.at
		by := s.threads[woke.waker]
		if by != nil && by != t && by.runsBefore(at) {
			t = by
			continue
		}
		slept := t.asleepSince(seen, at)
		p.add(slept, at, Slept, t, 0)
		at = slept
	}
	p.add(max(c.ReadNS, c.BeginNS), at, Unseen, nil, 0)
	read := max(c.BeginNS, c.ReadNS)
	if reader := s.threads[s.readers[c.Index]]; reader != nil && s.since < read {
		p.states(reader, max(c.BeginNS, s.since), read, Busy)
		read = max(c.BeginNS, s.since)
	}
	p.add(c.BeginNS, read, Unseen, nil, 0)
	slices.Reverse(p.segments)
	return p.segments
}

// runsBefore reports whether the thread had a CPU up to that time: a thread that wakes another one has.
func (t *thread) runsBefore(at int64) bool {
	i := t.before(at)
	return i >= 0 && t.log[i].state == schedule.Running
}

// asleepSince returns when the sleep began that ended at a time, or from if it began before that.
func (t *thread) asleepSince(from, at int64) int64 {
	i := t.before(at)
	switch {
	case i < 0:
		return from
	case t.log[i].state != schedule.Sleeping: // it slept and woke in the same nanosecond
		return at
	}
	return max(from, t.log[i].at)
}

// states adds a thread's states from one time to another, the latest first. ran is the kind of the time in which it had
// a CPU.
func (p *path) states(t *thread, from, to int64, ran Kind) {
	for i := t.before(to); to > from; i-- {
		if i < 0 {
			p.add(from, to, Slept, t, 0)
			return
		}
		c, kind := t.log[i], Slept
		switch c.state {
		case schedule.Running:
			kind = ran
		case schedule.Runnable:
			kind = Waited
		case schedule.Held:
			kind = Stopped
		}
		if len(p.segments) >= maxSegments {
			p.add(from, to, Unseen, nil, 0)
			return
		}
		p.add(max(from, c.at), to, kind, t, c.level)
		to = min(to, max(from, c.at))
	}
}

// add puts a segment before those that are there, or makes the first of them longer.
func (p *path) add(from, to int64, kind Kind, t *thread, level int) {
	if to <= from {
		return
	}
	s := Segment{Begin: time.Duration(from - p.begin), Length: time.Duration(to - from), Kind: kind}
	if t != nil {
		s.Thread, s.Pool = t.tid, t.pool
	}
	if kind == Stopped {
		s.Quota, s.Own = p.s.levels.All[level].Path, p.s.levels.All[level].Own
	}
	if n := len(p.segments); n > 0 {
		next := &p.segments[n-1]
		if next.Kind == kind && next.Thread == s.Thread && next.Quota == s.Quota {
			next.Begin, next.Length = s.Begin, next.Length+s.Length
			return
		}
	}
	p.segments = append(p.segments, s)
}
