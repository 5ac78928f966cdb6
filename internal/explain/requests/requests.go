package requests

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Least is how many requests are enough to speak of requests.
const Least = 20

// Requests are those of a recording.
type Requests struct {
	// Seen reports that the recording has the reads and writes of sockets. Without them there are no requests in it,
	// whatever the container did.
	Seen bool
	// Count is how many were answered within the recording, from their first byte to their last write.
	Count int
	// Unanswered is how many had been read and had no write at the end of the recording.
	Unanswered int
	// Merged is how many reads came before the answer to an earlier read on the same connection.
	Merged int
	// Quantiles of their times, by nearest rank, and the longest; of the first million. Without meaning if Count is 0.
	P50, P90, P99, Max time.Duration
	// Quantile is the highest up to p99 that so many requests tell, which a fix would judge by, and High its value; 0: not known.
	Quantile float64
	High     time.Duration
	// Lengths are the first million in few bins.
	Lengths []stats.Length
	// Slowest are up to ten, the slowest first.
	Slowest []Request
}

// Enough reports whether there are enough requests to speak of them rather than of threads.
func (r *Requests) Enough() bool { return r != nil && r.Count >= Least }

// OneWay reports whether data was read and hardly any of it answered: logs and metrics, or answers from another socket.
func (r *Requests) OneWay() bool { return r != nil && r.Count < Least && r.Unanswered >= Least }

// Request is one request with its timeline.
type Request struct {
	// Begin is when its data arrived, Took the time from there to its last write.
	Begin, Took time.Duration
	// Segments are in the order of time, without a gap, and their lengths add up to Took.
	Segments []Segment
}

// Segment is a part of a request's time.
type Segment struct {
	// Begin is since the request's.
	Begin, Length time.Duration
	Kind          Kind
	// Thread is the thread of the container whose state this is, Pool the pool of that thread.
	Thread uint32
	Pool   string
	// Quota is the path of the cgroup whose quota held the thread back, and Own reports that it is the container's own or
	// one below it; both only for Stopped.
	Quota string
	Own   bool
}

// Kind says what a request's time was.
type Kind string

// Kinds of segments.
const (
	// Ran: the thread had a CPU.
	Ran Kind = "ran"
	// Busy: the request was not read yet, and the thread that read it later had a CPU for something else.
	Busy Kind = "busy"
	// Waited: the thread was runnable and waited for a CPU.
	Waited Kind = "waited"
	// Stopped: a quota held the thread back.
	Stopped Kind = "stopped"
	// Slept: the thread slept and waited for something outside the container, for a timer, or for a lock.
	Slept Kind = "slept"
	// Unseen: the history before that was too long to keep.
	Unseen Kind = "unseen"
)

// Kinds are all kinds in the order of display.
var Kinds = []Kind{Ran, Busy, Waited, Stopped, Slept, Unseen}

// Of sums up the request's time of one kind.
func (r *Request) Of(k Kind) time.Duration {
	sum := time.Duration(0)
	for _, s := range r.Segments {
		if s.Kind == k {
			sum += s.Length
		}
	}
	return sum
}
