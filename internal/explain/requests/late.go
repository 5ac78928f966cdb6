package requests

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// Late watches for a request that takes longer than a bound, while it is recorded: answered late, or not answered yet on a connection
// that answers. It has the longest of them, so that a bound can be made of what was seen in the same way. Its memory is bounded
// whatever the events say. It is not safe for concurrent use.
type Late struct {
	bound       int64
	connections map[uint32]*lateConnection
	looked      int64
	longest     int64
}

type lateConnection struct {
	schedule.Connection
	answers bool // it answered a request before
}

// lookEvery is how often open requests are looked at, in nanoseconds of the recording.
const lookEvery = 20e6

// NewLate begins to watch. Without a bound, 0, no request is late.
func NewLate(bound time.Duration) *Late {
	if bound <= 0 {
		bound = math.MaxInt64
	}
	return &Late{bound: bound.Nanoseconds(), connections: map[uint32]*lateConnection{}}
}

// Longest is how long a request took, or had taken when it was looked at last, at most; 0: none was seen.
func (l *Late) Longest() time.Duration { return time.Duration(l.longest) }

// took notes how long a request took up to now, and tells whether that is beyond the bound.
func (l *Late) took(ns int64) bool {
	l.longest = max(l.longest, ns)
	return ns > l.bound
}

// Add takes the next event. late is how long a request took, or has taken up to now, that is beyond the bound; 0: there is none.
func (l *Late) Add(e *recording.Event) (late time.Duration) {
	switch e.Kind {
	case recording.Receive:
		c := l.connections[e.Socket]
		if c == nil {
			if len(l.connections) == schedule.MaxConnections {
				return 0
			}
			c = &lateConnection{Connection: schedule.NewConnection(len(l.connections))}
			l.connections[e.Socket] = c
		}
		c.answers = c.answers || c.Answered()
		c.Receive(e, e.AtNS)
	case recording.Send:
		if c := l.connections[e.Socket]; c != nil && c.Send(e.AtNS, true) && l.took(c.EndNS-c.BeginNS) {
			return time.Duration(c.EndNS - c.BeginNS)
		}
	}
	if e.AtNS-l.looked < lookEvery {
		return 0
	}
	l.looked = e.AtNS
	for _, c := range l.connections {
		if c.answers && c.Open() && l.took(e.AtNS-c.BeginNS) {
			late = max(late, time.Duration(e.AtNS-c.BeginNS))
		}
	}
	return late
}
