package loadgen

import (
	"math/rand/v2"
	"time"
)

// tracker keeps a plan's account: what became of each request.
type tracker struct {
	plan   Plan
	result Result
	late   Latency
	earned float64 // retries that the budget still has
	chance *rand.Rand
}

// maxEarned bounds how many retries can be saved up.
const maxEarned = 100

func newTracker(p Plan) *tracker {
	t := &tracker{plan: p, chance: rand.New(rand.NewPCG(p.Seed, 1<<32))}
	for range p.Phases {
		t.result.Phases = append(t.result.Phases, PhaseResult{Streams: make([]StreamResult, len(p.Streams))})
	}
	t.result.Timeline = make([]SlotResult, int((p.Duration()+p.Drain)/Slot)+1)
	return t
}

// of is where an arrival's figures go; those of a phase that is not measured go
// nowhere.
func (t *tracker) of(a arrival) *StreamResult {
	if !t.measured(a) {
		return &StreamResult{}
	}
	return &t.result.Phases[a.phase].Streams[a.stream]
}

func (t *tracker) measured(a arrival) bool { return t.plan.Phases[a.phase].Measured }

// slot is the timeline's at that time; the last slot takes all later times.
func (t *tracker) slot(at time.Duration) *SlotResult {
	return &t.result.Timeline[max(0, min(int(at/Slot), len(t.result.Timeline)-1))]
}

// begin notes a request whose time has come, lag after it.
func (t *tracker) begin(a arrival, lag time.Duration) {
	t.of(a).Intended++
	t.slot(a.at).Intended++
	t.earned = min(maxEarned, t.earned+t.plan.Retries.Budget)
	if !t.measured(a) {
		return // its first requests are late if the generator itself took long to start
	}
	own := &t.result.Own
	own.Sends++
	if lag > t.plan.LateAfter {
		own.LateSends++
	}
	own.LateMax = max(own.LateMax, lag)
	t.late.Add(lag)
}

// try notes that a request was sent, for the first time or again.
func (t *tracker) try(a arrival, now time.Duration) {
	t.of(a).Tries++
	t.slot(now).Tries++
}

// again says whether a request whose try came to nothing is tried once more,
// and after how long.
func (t *tracker) again(tried int) (after time.Duration, ok bool) {
	r := t.plan.Retries
	if tried > r.Max {
		return 0, false
	}
	if r.Budget > 0 {
		if t.earned < 1 {
			return 0, false
		}
		t.earned--
	}
	return time.Duration(float64(r.Backoff) * (0.5 + t.chance.Float64())), true
}

// answered notes a good answer.
func (t *tracker) answered(a arrival, now time.Duration) {
	s := t.of(a)
	s.Answered++
	s.Latency.Add(now - a.at)
	if t.plan.Good == 0 || now-a.at <= t.plan.Good {
		t.slot(a.at).Good++
	}
}

// failed notes a request that is given up.
func (t *tracker) failed(a arrival, now time.Duration) {
	s := t.of(a)
	s.Failed++
	s.Latency.Add(now - a.at)
}

// unfinished notes a request that is still on its way at the end.
func (t *tracker) unfinished(a arrival, now time.Duration) {
	s := t.of(a)
	s.Unfinished++
	s.Latency.Add(now - a.at)
}

func (t *tracker) failure(text string) {
	const most = 300
	if t.result.FirstFailure == "" {
		t.result.FirstFailure = text[:min(len(text), most)]
	}
}

// finish closes the account.
func (t *tracker) finish(took, cpu time.Duration, realTime bool) Result {
	own := &t.result.Own
	own.LateAfter = t.plan.LateAfter
	own.Seconds, own.CPUSeconds, own.RealTime = took.Seconds(), cpu.Seconds(), realTime
	own.LateP99, _ = t.late.Quantile(0.99, 0)
	return t.result
}
