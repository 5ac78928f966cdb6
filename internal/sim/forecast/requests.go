package forecast

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/simulate"
)

// The response of a thread begins when the thread is woken. A client's latency begins when its data arrives: the thread
// may run for others then, and other threads may work before the answer. A replay therefore keeps when the data of each
// request arrived, and in which thread's work its last write was. See package requests for what a request is.

// maxRequests bounds the requests that a replay follows; 24 bytes each, and 8 in each run.
const maxRequests = 1 << 16

// maxExchanges bounds the connections under way.
const maxExchanges = 1 << 16

// recordedRequest is a request as recorded.
type recordedRequest struct {
	began, took time.Duration // began: since the recording's start
	writer      *thread       // of its last write
}

// JudgedRequests says which requests Row.Requests has.
type JudgedRequests struct {
	// Pool is that of the threads that write the answers; "": any.
	Pool string
	// Count is how many the recording has.
	Count int
}

// exchange is the request under way on a connection.
type exchange struct {
	began   int64 // below 0: before the recording
	request int   // index in builder.requests; -1: no write yet
	step    int   // of the thread that wrote last
}

// onReceive begins a connection's next request.
func (b *builder) onReceive(e *recording.Event) {
	if b.exchanges[e.Socket] == nil && len(b.exchanges) == maxExchanges {
		return
	}
	b.exchanges[e.Socket] = &exchange{began: b.now - int64(min(e.Count, uint64(b.now)+1)), request: -1}
}

// onSend puts the end of a request into the steps of the thread that writes. A later write of the same request moves it
// there.
func (b *builder) onSend(e *recording.Event) {
	x, t := b.exchanges[e.Socket], b.threads[e.Thread]
	if x == nil || x.began < 0 || t == nil || t.state != recording.Running {
		return
	}
	if x.request < 0 {
		if len(b.requests) == maxRequests {
			return
		}
		x.request = len(b.requests)
		b.requests = append(b.requests, recordedRequest{began: time.Duration(x.began)})
	} else {
		b.requests[x.request].writer.steps[x.step].Thread = -1
	}
	b.flush(t)
	x.step = len(t.steps)
	b.requests[x.request].writer, b.requests[x.request].took = t, time.Duration(b.now-x.began)
	b.step(t, simulate.ReplayStep{Kind: simulate.StepReply, Thread: int32(x.request)})
}

// arrivals gives the replay its requests.
func (a *assembly) arrivals() {
	a.l.requests = a.requests
	for _, r := range a.requests {
		a.l.replay.Requests = append(a.l.replay.Requests, r.began)
	}
}

// longerRequests is by which factor the p99 of requests must lie above that of the threads' responses for requests to be
// told apart from them.
const longerRequests = 1.5

// judgeRequests sets the p99 of requests in all rows that replay them, where it is not that of the threads: of requests
// that the judged pool answers, or of all if it answers too few.
//
// Worked example: nginx hands requests on to php-fpm. Its threads' responses have a p99 of 44 ms, its requests of 111 ms,
// and a client outside measures 178 ms.
func (m *maker) judgeRequests() {
	j := m.f.Judged
	if j == nil || j.Quantile != 0.99 {
		return
	}
	which, judged := m.l.answeredBy(j.Pool), JudgedRequests{Pool: j.Pool}
	if len(which) < requests.Least {
		which, judged.Pool = m.l.answeredBy(""), ""
	}
	threads := m.l.recordedResponses(j.Pool).Quantile(0.99)
	if judged.Count = len(which); judged.Count < requests.Least || threads == nil {
		return
	}
	recorded := simulate.NewTimes()
	for _, r := range which {
		recorded.Add(m.l.requests[r].took)
	}
	check := Figure{Recorded: recorded.Quantile(0.99)}
	if *check.Recorded < longerRequests**threads {
		return
	}
	m.f.Requests = &judged
	for i, results := range m.all {
		row := &m.f.Rows[i]
		if results == nil || len(results[0].requests) == 0 {
			continue
		}
		in, all := m.l.requestTimes(results, which)
		row.Requests = new(milliseconds(all[len(all)-1-rankOf(0.99, len(all))].took))
		if row.Remedy.Name == None && row.HostLoad == 0 {
			check.Replayed = row.Requests
		}
		row.RequestsRange = otherTimes(in, all, 0.99).scaled(check.ratio(), *row.Requests)
	}
}

// answeredBy are the indices of the requests that threads of a pool answer ("": of any).
func (l *Load) answeredBy(pool string) (all []int) {
	for i, r := range l.requests {
		if pool == "" || r.writer.pool.Name == pool {
			all = append(all, i)
		}
	}
	return all
}

// requestTimes are these requests of all runs, the slowest first, and how many arrived in each block of each run.
func (l *Load) requestTimes(results []result, which []int) (in []int, all []answer) {
	in = make([]int, len(results)*blocks)
	for i := range results {
		for _, r := range which {
			a := answer{i*blocks + l.blockAt(l.requests[r].began), results[i].requests[r]}
			in[a.block]++
			all = append(all, a)
		}
	}
	slowestFirst(all)
	return in, all
}
