package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// The response of a thread begins when the thread is woken. A client's latency begins when its data arrives: the thread
// may run for others then, and other threads may work before the answer. A replay therefore keeps when the data of each
// request arrived, and in which thread's work its last write was. See package requests for what a request is.

// maxRequests bounds the requests that a replay follows; 24 bytes each, and 8 in each run.
const maxRequests = 1 << 15

// recordedRequest is a request as recorded.
type recordedRequest struct {
	began, took time.Duration // began: since the recording's start
	writer      *thread       // of its last write; nil once the recording is read
	pool        *Pool         // the writer's
	connection  *schedule.Connection
	// work is the CPU time of the thread that wrote, as far as it was for this request: from the read to the last write if it read the
	// request too, else since it was woken; and that of the threads that handed it the result since the read. So it does not
	// depend on how long any of them was stopped.
	work time.Duration
	unsettled
	// closed: its client sends the next request as soon as it has the answer, all the time.
	closed bool
	// after is how many places before it the connection's request before is, whose answer came so long before; 0: there is none.
	after int32
	gap   time.Duration
}

// exchange is a connection with what a replay needs of its request.
type exchange struct {
	request  int // index in builder.requests; -1: no write yet
	previous int // the connection's request before, as request is
	step     int // of the thread that wrote last
	reader   *thread
	writer   *thread // that wrote last, if another; nil: none
	// byReader and byWriter are their CPU time for the request up to their last read or write.
	byReader, byWriter int64
	unsettled
	// readStep is the reader's step at the read; -1: there is none, or it wakes the thread that found the request.
	readStep int
}

// onReceive begins a connection's next request.
func (b *builder) onReceive(c *schedule.Change) {
	if c.Connection.Index == len(b.exchanges) {
		b.exchanges = append(b.exchanges, nil)
	}
	x := &exchange{request: -1, previous: -1, reader: b.own(c.Thread), readStep: -1}
	if last := b.exchanges[c.Connection.Index]; last != nil {
		x.previous = last.request
	}
	b.exchanges[c.Connection.Index] = x
	if x.reader != nil {
		b.share(x.reader, x, true)
	}
	if x.reader != nil && x.reader.State == schedule.Running {
		b.flush(x.reader)
		x.readStep = len(x.reader.steps)
		b.step(x.reader, simulate.ReplayStep{Kind: simulate.StepRead, For: time.Duration(max(0, c.Connection.BeginNS))})
	}
}

// spent is the CPU time of a thread up to now.
func (t *thread) spent(now int64) int64 {
	if t.State == schedule.Running {
		return t.total + now - t.onAt
	}
	return t.total
}

// onSend puts the end of a request into the steps of the thread that writes. A later write of the same request moves it
// there.
func (b *builder) onSend(t *thread, c *schedule.Connection) {
	x := b.exchanges[c.Index]
	if t != x.reader && t != x.writer {
		x.writer, x.byWriter = t, 0
	}
	b.share(t, x, false)
	if x.request < 0 {
		if len(b.requests) == maxRequests {
			return
		}
		x.request = len(b.requests)
		r := recordedRequest{began: time.Duration(c.BeginNS), connection: c}
		if x.previous >= 0 {
			if before := &b.requests[x.previous]; r.began >= before.began+before.took {
				r.after, r.gap = int32(x.request-x.previous), r.began-before.began-before.took
			}
		}
		b.requests = append(b.requests, r)
	} else {
		b.requests[x.request].writer.steps[x.step].Thread = -1
	}
	b.flush(t)
	x.step = len(t.steps)
	r := &b.requests[x.request]
	r.writer, r.took, r.work, r.unsettled = t, time.Duration(b.now-c.BeginNS), time.Duration(x.byWriter), unsettled{}
	if t == x.reader {
		r.work, r.unsettled = time.Duration(x.byReader), x.unsettled
	}
	if t.woken >= c.ReadNS {
		r.work += time.Duration(t.handed.work + t.handed.behind)
	}
	b.foundBy(x, t, c.ReadNS)
	b.step(t, simulate.ReplayStep{Kind: simulate.StepReply, Thread: int32(x.request)})
}

// tellRequests completes the requests once all events are there, and roles are told apart: which pool answered, and
// whether the client has a
// closed loop. It may be called again.
func (b *builder) tellRequests() {
	for i := range b.requests {
		r := &b.requests[i]
		if r.connection != nil {
			r.closed, r.connection = r.connection.Loop().Closed(), nil
		}
		if r.writer != nil {
			r.work += r.unsettled.of(r.writer)
			r.pool, r.writer = r.writer.pool, nil // a thread holds all that was recorded of it
		}
	}
}

// arrivals gives the replay its requests. A client with a closed loop sends none before it has the answer to the one before.
func (a *assembly) arrivals() {
	a.tellRequests()
	a.l.requests = a.requests
	for i := range a.requests {
		r := &a.requests[i]
		q := simulate.ReplayRequest{At: r.began}
		if r.closed {
			q.After, q.Gap = r.after, r.gap
		}
		a.l.replay.Requests = append(a.l.replay.Requests, q)
	}
}

// requestTimes are these requests of all runs, the slowest first, and how many arrived in each block of each run. The first of
// a run counts as without an answer where none was sent.
func (l *Load) requestTimes(results []result, which []int) (in []int, answers []answer) {
	in = make([]int, len(results)*blocks)
	for i := range results {
		for n, r := range which {
			took := results[i].requests[r]
			if took == simulate.NotSent {
				if n > 0 {
					continue
				}
				took = l.window
			}
			a := answer{i*blocks + l.blockAt(l.requests[r].began), took}
			in[a.block]++
			answers = append(answers, a)
		}
	}
	slowestFirst(answers)
	return in, answers
}
