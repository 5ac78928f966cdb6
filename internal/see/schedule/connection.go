package schedule

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// MaxConnections bounds the connections that are followed, whatever the events say.
const MaxConnections = 1 << 16

// Connection is a connection of a client with its current request: the one definition of what a request is, of which explain tells and
// by which a forecast judges. A request begins when its data arrives and ends with the last write before the next read. It counts if it
// began within the recording and a thread that is known to run wrote.
type Connection struct {
	// Index is below MaxConnections and differs from that of every other connection.
	Index int
	// Number is that of its request: two may begin at the same time.
	Number int
	// BeginNS is when the data arrived, ReadNS when it was read, EndNS the last write since. -1: before the recording, or not yet.
	BeginNS, ReadNS, EndNS int64
	// Writes is how many writes were seen since the read.
	Writes int
	loop   Loop
}

// Loop is how a connection's requests follow the answers before.
type Loop struct {
	// Requests followed an answer, AtOnce of them within half a millisecond, Gaps after it together.
	Requests, AtOnce int
	Gaps             time.Duration
}

// NewConnection returns one of which nothing was read.
func NewConnection(index int) Connection {
	return Connection{Index: index, BeginNS: -1, ReadNS: -1, EndNS: -1}
}

// A client with a closed loop sends its next request as soon as it has the answer, and waits for nothing else: closedShare of a
// connection's requests, of leastOfClosed or more, come within atOnceNS of an answer. Its requests say how fast the service is, and
// nobody waits for a single one.
const (
	atOnceNS      = 500_000
	closedShare   = 0.8
	leastOfClosed = 5
)

// Closed reports whether the client has a closed loop.
func (l Loop) Closed() bool {
	return l.Requests >= leastOfClosed && float64(l.AtOnce) >= closedShare*float64(l.Requests)
}

// Loop is how its requests follow the answers before.
func (c *Connection) Loop() Loop { return c.loop }

// Receive begins the next request.
func (c *Connection) Receive(e *recording.Event, nowNS int64) {
	begin := nowNS - int64(min(e.Count, uint64(nowNS)+1))
	if c.EndNS > 0 {
		c.loop.Requests++
		if gap := begin - c.EndNS; gap <= atOnceNS {
			c.loop.AtOnce++
			c.loop.Gaps += time.Duration(max(0, gap))
		}
	}
	c.Number++
	c.BeginNS, c.ReadNS, c.EndNS, c.Writes = begin, nowNS, -1, 0
}

// Send tells whether a write at that time is of a request that counts, and if so ends it there for now.
func (c *Connection) Send(nowNS int64, writerRuns bool) bool {
	if c.BeginNS < 0 || !writerRuns {
		return false
	}
	c.EndNS = nowNS
	c.Writes++
	return true
}

// Open reports whether a request that counts has no write yet.
func (c *Connection) Open() bool { return c.BeginNS >= 0 && c.EndNS < 0 }

// Answered reports whether it was answered.
func (c *Connection) Answered() bool { return c.BeginNS >= 0 && c.EndNS >= 0 }

func (r *Reader) onReceive(e *recording.Event) {
	c := r.connections[e.Socket]
	if c == nil {
		if len(r.connections) == MaxConnections {
			return
		}
		c = new(NewConnection(len(r.connections)))
		r.connections[e.Socket] = c
	}
	r.over(c)
	c.Receive(e, r.now)
	r.tell(Change{Kind: Received, Thread: r.threads[e.Thread], Connection: c})
}

func (r *Reader) onSend(e *recording.Event) {
	t := r.threads[e.Thread]
	if c := r.connections[e.Socket]; c != nil && c.Send(r.now, t != nil && t.State == Running) {
		r.tell(Change{Kind: Sent, Thread: t, Connection: c})
	}
}

func (r *Reader) over(c *Connection) {
	if c.BeginNS >= 0 {
		r.tell(Change{Kind: Over, Connection: c})
	}
}
