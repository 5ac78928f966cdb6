package requests

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// slowestKept is how many of the slowest requests have their timeline.
const slowestKept = 10

// Scan is told of a recording's events and changes. Its memory is bounded whatever they say. It is not safe for concurrent use.
type Scan struct {
	history
	poolOf  func(tid, tgid uint32, comm string) string
	levels  *schedule.Levels
	readers []uint32 // threads that read the connections' current requests, by Index; 0: not known
	found   Requests
	times   []int64
	slowest []kept
}

// kept is a request among the slowest so far.
type kept struct {
	connection *schedule.Connection
	number     int
	took       int64
	Request
}

// NewScan begins with a recording's header. poolOf names the pool of thread tid of process tgid with name comm.
func NewScan(h *recording.Header, poolOf func(tid, tgid uint32, comm string) string) *Scan {
	s := &Scan{
		history: history{threads: map[uint32]*thread{}},
		poolOf:  poolOf, levels: schedule.NewLevels(h),
	}
	s.found.Seen = h.Features.Sockets
	return s
}

// Event takes the time of the next event.
func (s *Scan) Event(nowNS int64, _ *recording.Event) { s.now = nowNS }

// Changed takes a change.
func (s *Scan) Changed(c *schedule.Change) {
	switch c.Kind {
	case schedule.Received:
		reader := uint32(0)
		if c.Thread != nil {
			reader = c.Thread.TID
		}
		if c.Connection.Index == len(s.readers) {
			s.readers = append(s.readers, 0)
		}
		s.readers[c.Connection.Index] = reader
		return
	case schedule.Sent:
		s.keep(c.Connection, c.Thread.TID)
		return
	case schedule.Over:
		s.over(c)
		return
	}
	if c.Thread == nil {
		return
	}
	t := s.thread(c.Thread.TID)
	if t == nil {
		return
	}
	switch c.Kind {
	case schedule.Named:
		t.pool, t.ended = s.poolOf(c.Thread.TID, c.Thread.TGID, c.Thread.Comm), false
	case schedule.Woke, schedule.Did:
		s.note(t, c)
	case schedule.Ended:
		t.ended = true
	}
}

// over counts a request that was answered. One that is read over by the next, or was not answered at the end, is counted too.
func (s *Scan) over(c *schedule.Change) {
	switch {
	case c.Connection.Open() && c.Event != nil:
		s.found.Merged++
	case c.Connection.Open():
		s.found.Unanswered++
	default:
		took := c.Connection.EndNS - c.Connection.BeginNS
		s.found.Count++
		if len(s.times) < maxCounted {
			s.times = append(s.times, took)
		}
		s.found.Max = max(s.found.Max, time.Duration(took))
	}
}

// keep keeps the timeline of a connection's request up to now if it is one of the slowest. A later write replaces it.
func (s *Scan) keep(c *schedule.Connection, writer uint32) {
	took := c.EndNS - c.BeginNS
	if len(s.slowest) == slowestKept && took <= s.slowest[slowestKept-1].took {
		return
	}
	s.slowest = slices.DeleteFunc(s.slowest, func(k kept) bool { return k.connection == c && k.number == c.Number })
	k := kept{connection: c, number: c.Number, took: took, Request: Request{
		Begin: time.Duration(c.BeginNS), Took: time.Duration(took), Segments: s.timeline(c, writer),
	}}
	at, _ := slices.BinarySearchFunc(s.slowest, took, func(k kept, took int64) int { return int(min(max(took-k.took, -1), 1)) })
	s.slowest = slices.Insert(s.slowest, at, k)
	s.slowest = s.slowest[:min(len(s.slowest), slowestKept)]
}

// Finish returns the requests once the recording has ended. Call it once.
func (s *Scan) Finish() *Requests {
	r := &s.found
	for _, k := range s.slowest {
		r.Slowest = append(r.Slowest, k.Request)
	}
	if len(s.times) > 0 {
		slices.Sort(s.times)
		at := func(q float64) time.Duration { return time.Duration(stats.Rank(s.times, q)) }
		r.P50, r.P90, r.P99 = at(0.5), at(0.9), at(0.99)
		r.Quantile = stats.Tellable(r.Count, time.Duration(s.now), objective.DefaultQuantile)
		r.High = at(r.Quantile)
		var lengths stats.Lengths
		for _, took := range s.times {
			lengths.Add(max(time.Microsecond, time.Duration(took)), 1)
		}
		r.Lengths = lengths.All()
	}
	return r
}
