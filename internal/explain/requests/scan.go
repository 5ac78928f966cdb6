package requests

import (
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// slowestKept is how many of the slowest requests have their timeline.
const slowestKept = 10

// Scan reads a recording's events. Its memory is bounded whatever they say. It is not safe for concurrent use.
type Scan struct {
	history
	poolOf      func(tid, tgid uint32, comm string) string
	quotas      *quotas
	connections map[uint32]*connection
	found       Requests
	times       []int64
	slowest     []kept
}

// connection is a connection with the thread that read its request.
type connection struct {
	Connection
	by uint32
}

// kept is a request among the slowest so far.
type kept struct {
	socket uint32
	number int
	took   int64
	Request
}

// NewScan begins with a recording's header. poolOf names the pool of thread tid of process tgid with name comm.
func NewScan(h *recording.Header, poolOf func(tid, tgid uint32, comm string) string) *Scan {
	s := &Scan{
		history: history{threads: map[uint32]*thread{}, cpus: map[int32]*thread{}},
		poolOf:  poolOf, quotas: newQuotas(h), connections: map[uint32]*connection{},
	}
	s.found.Seen = h.Features.Sockets
	for i := range h.Threads {
		of := &h.Threads[i]
		t := s.thread(of.TID)
		if t == nil {
			continue
		}
		s.name(t, of.TGID, of.Comm)
		switch of.State {
		case recording.Running:
			s.set(t, change{state: running})
			s.cpus[of.CPU] = t
		case recording.Runnable:
			s.set(t, change{state: runnable})
		default:
			s.set(t, change{})
		}
	}
	return s
}

func (s *Scan) name(t *thread, tgid uint32, comm string) {
	if tgid != 0 {
		t.tgid = tgid
	}
	t.pool, t.ended = s.poolOf(t.tid, t.tgid, comm), false
}

// Add takes the next event.
func (s *Scan) Add(e *recording.Event) {
	s.history.add(e, s.quotas)
	switch e.Kind {
	case recording.Name, recording.Enter:
		if t := s.thread(e.Thread); t != nil {
			s.name(t, e.TGID, e.Text)
		}
	case recording.Receive:
		s.receive(e)
	case recording.Send:
		if c := s.connections[e.Socket]; c != nil && c.Send(s.now, s.runs(e.Thread)) {
			s.keep(e.Socket, c, e.Thread)
		}
	}
}

// receive ends the request before on that connection and begins the next one.
func (s *Scan) receive(e *recording.Event) {
	c := s.connections[e.Socket]
	if c == nil {
		if len(s.connections) == MaxConnections {
			return
		}
		c = &connection{Connection: NewConnection()}
		s.connections[e.Socket] = c
	}
	s.answered(c)
	if c.Open() {
		s.found.Merged++
	}
	c.Receive(e, s.now)
	c.by = e.Thread
}

// runs reports whether a thread is known to have a CPU.
func (s *Scan) runs(tid uint32) bool {
	t := s.threads[tid]
	return t != nil && t.last().state == running
}

// answered counts the connection's request if it was answered.
func (s *Scan) answered(c *connection) {
	if !c.Answered() {
		return
	}
	s.found.Count++
	if len(s.times) < maxCounted {
		s.times = append(s.times, c.End-c.Begin)
	}
	s.found.Max = max(s.found.Max, time.Duration(c.End-c.Begin))
}

// keep keeps the timeline of a connection's request up to now if it is one of the slowest. A later write replaces it.
func (s *Scan) keep(socket uint32, c *connection, writer uint32) {
	took := c.End - c.Begin
	if len(s.slowest) == slowestKept && took <= s.slowest[slowestKept-1].took {
		return
	}
	s.slowest = slices.DeleteFunc(s.slowest, func(k kept) bool { return k.socket == socket && k.number == c.Number })
	k := kept{socket: socket, number: c.Number, took: took, Request: Request{
		Begin: time.Duration(c.Begin), Took: time.Duration(took), Segments: s.timeline(c, writer),
	}}
	at, _ := slices.BinarySearchFunc(s.slowest, took, func(k kept, took int64) int { return int(min(max(took-k.took, -1), 1)) })
	s.slowest = slices.Insert(s.slowest, at, k)
	s.slowest = s.slowest[:min(len(s.slowest), slowestKept)]
}

// Finish ends the recording and returns its requests. Call it once.
func (s *Scan) Finish() *Requests {
	for _, c := range s.connections {
		s.answered(c)
		if c.Open() {
			s.found.Unanswered++
		}
	}
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
