package requests

import "github.com/unthrottle/unthrottle/internal/see/recording"

// MaxConnections bounds the connections that are followed, whatever the events say.
const MaxConnections = 1 << 16

// Connection is a connection of a client with its current request: the one definition of what a request is, of which explain tells and
// by which a forecast judges. A request begins when its data arrives and ends with the last write before the next read. It counts if it
// began within the recording and a thread that is known to run wrote.
type Connection struct {
	// Number is that of its request: two may begin at the same time.
	Number int
	// Begin is when the data arrived, Read when it was read, End the last write since; in nanoseconds. -1: before the recording, or not
	// yet.
	Begin, Read, End int64
}

// NewConnection returns one of which nothing was read.
func NewConnection() Connection { return Connection{Begin: -1, Read: -1, End: -1} }

// Receive begins the next request.
func (c *Connection) Receive(e *recording.Event, now int64) {
	c.Number++
	c.Begin, c.Read, c.End = now-int64(min(e.Count, uint64(now)+1)), now, -1
}

// Send tells whether a write at that time is of a request that counts, and if so ends it there for now.
func (c *Connection) Send(now int64, writerRuns bool) bool {
	if c.Begin < 0 || !writerRuns {
		return false
	}
	c.End = now
	return true
}

// Open reports whether a request that counts has no write yet.
func (c *Connection) Open() bool { return c.Begin >= 0 && c.End < 0 }

// Answered reports whether it was answered.
func (c *Connection) Answered() bool { return c.Begin >= 0 && c.End >= 0 }
