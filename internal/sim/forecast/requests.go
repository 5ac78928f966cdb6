package forecast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
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
		all := m.l.requestTimes(results, which)
		row.Requests = new(milliseconds(all[rankOf(len(all))].took))
		if row.Remedy.Name == None && row.HostLoad == 0 {
			check.Replayed = row.Requests
		}
		row.RequestsRange = m.l.otherTimes(all).scaled(check.ratio(), *row.Requests)
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

// answer is a request of one run: the block of time in which it arrived, and how long it took.
type answer struct {
	block int
	took  time.Duration
}

// requestTimes are these requests of all seeds, the fastest first.
func (l *Load) requestTimes(results []result, which []int) []answer {
	all := make([]answer, 0, len(results)*len(which))
	for i := range results {
		for _, r := range which {
			all = append(all, answer{int(l.requests[r].began * blocks / l.window), results[i].requests[r]})
		}
	}
	slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.took, b.took) })
	return all
}

// rankOf is the index of the p99 of n values.
func rankOf(n int) int { return max(0, int(math.Ceil(0.99*float64(n)))-1) }

const (
	// blocks is into how many parts the recording's time is split. A part of half a second of 6 s has whole bursts with
	// the stops that they cause, so that parts are nearly independent of each other.
	blocks = 12
	// draws is how many other times are drawn from the blocks.
	draws = 400
	// drawSeed is fixed so that every forecast draws the same.
	drawSeed = 0x64726177
)

// otherTimes is the range of the p99 of requests in Coverage of other times of the same length: requests that come by
// chance come otherwise then. Each draw has as many blocks as the recording, with replacement (a block bootstrap:
// Künsch, Annals of Statistics 17(3), 1989).
//
// Worked example: 12 blocks of 50 requests each; in one of them a burst makes 20 requests take 300 ms, the others take
// 20 ms. p99 is 300 ms. About a third of the draws lacks that block, and the range is from 20 to 300 ms.
func (l *Load) otherTimes(all []answer) *Range {
	rng := rand.New(rand.NewPCG(drawSeed, 0))
	var in [blocks]int // requests of each block
	for _, a := range all {
		in[min(a.block, blocks-1)]++
	}
	p99s := make([]float64, 0, draws)
	for range draws {
		var times [blocks]int
		total := 0
		for range blocks {
			b := rng.IntN(blocks)
			times[b]++
			total += in[b]
		}
		// The p99 is the value that 1 % of the drawn requests exceed.
		above := total - 1 - rankOf(total)
		for i := len(all) - 1; i >= 0 && total > 0; i-- {
			if above -= times[min(all[i].block, blocks-1)]; above < 0 {
				p99s = append(p99s, milliseconds(all[i].took))
				break
			}
		}
	}
	slices.Sort(p99s)
	low := int((1 - Coverage) / 2 * float64(len(p99s)))
	return &Range{p99s[low], p99s[len(p99s)-1-low]}
}
