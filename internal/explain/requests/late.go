package requests

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Late watches for a request that takes longer than a bound, while it is recorded: answered late, or not answered yet on a connection
// that answers. Its memory is bounded whatever the events say. It is not safe for concurrent use.
type Late struct {
	bound       int64
	connections map[uint32]*lateConnection
	looked      int64
}

type lateConnection struct {
	Connection
	answers bool // it answered a request before
}

// lookEvery is how often open requests are looked at, in nanoseconds of the recording.
const lookEvery = 20e6

// NewLate begins to watch.
func NewLate(bound time.Duration) *Late {
	return &Late{bound: bound.Nanoseconds(), connections: map[uint32]*lateConnection{}}
}

// Add takes the next event. late is how long a request took, or has taken up to now, that is beyond the bound; 0: there is none.
func (l *Late) Add(e *recording.Event) (late time.Duration) {
	switch e.Kind {
	case recording.Receive:
		c := l.connections[e.Socket]
		if c == nil {
			if len(l.connections) == MaxConnections {
				return 0
			}
			c = &lateConnection{Connection: NewConnection()}
			l.connections[e.Socket] = c
		}
		c.answers = c.answers || c.Answered()
		c.Receive(e, e.AtNS)
	case recording.Send:
		if c := l.connections[e.Socket]; c != nil && c.Send(e.AtNS, true) && c.End-c.Begin > l.bound {
			return time.Duration(c.End - c.Begin)
		}
	}
	if e.AtNS-l.looked < lookEvery {
		return 0
	}
	l.looked = e.AtNS
	for _, c := range l.connections {
		if c.answers && c.Open() && e.AtNS-c.Begin > l.bound {
			late = max(late, time.Duration(e.AtNS-c.Begin))
		}
	}
	return late
}
