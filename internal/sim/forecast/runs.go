package forecast

import (
	"io"
	"maps"
	"slices"
	"time"
)

// Run is one run of a thread as recorded: when it was woken, since the recording's start, the time from then until it ran
// and to its next sleep, and the CPU time in it.
type Run struct{ Woken, Delay, Response, CPU time.Duration }

// maxRuns bounds the runs that a recording keeps one by one, for all pools together; 32 bytes each.
const maxRuns = 1 << 18

// endedRun is a run of a thread, in ns.
type endedRun struct{ woken, delay, response, cpu int64 }

// keepRun keeps the run that ends now.
func (b *builder) keepRun(t *thread) {
	if b.runs < maxRuns {
		b.runs++
		t.ended = append(t.ended, endedRun{t.woken, t.delay, b.now - t.woken, t.run})
	}
}

// Runs are the runs of a recording, by pool.
type Runs struct {
	// Window is the length of the recording, or of the part of it that was read.
	Window time.Duration
	// Lost is how many events the recording lost for each one that it has.
	Lost     float64
	pools    map[string][]Run
	requests []recordedRequest
}

// Request is one request as recorded: when its data arrived, since the recording's start, and how long it took.
type Request struct{ Began, Took time.Duration }

// Requests are those of a kind.
func (r *Runs) Requests(k Kind) (all []Request) {
	for i := range r.requests {
		if request := &r.requests[i]; k.has(request) {
			all = append(all, Request{request.began, request.took})
		}
	}
	return all
}

// CPU is the CPU time of all runs.
func (r *Runs) CPU() (sum time.Duration) {
	for _, runs := range r.pools {
		for _, run := range runs {
			sum += run.CPU
		}
	}
	return sum
}

// Of are the runs of the pools of that name ("": of all pools), the first maxRuns of the recording.
func (r *Runs) Of(pool string) []Run {
	if pool != "" {
		return r.pools[pool]
	}
	var runs []Run
	for _, name := range r.Pools() {
		runs = append(runs, r.pools[name]...)
	}
	return runs
}

// Pools are the names of the pools that ran, sorted.
func (r *Runs) Pools() []string { return slices.Sorted(maps.Keys(r.pools)) }

// ReadWithRuns reads a recording once, as a Load and as its runs. Where there is no Load, such as of a container without a
// limit, the error is that of Read, and the runs are there all the same; nil: the recording has no events, or is none.
func ReadWithRuns(in io.Reader) (*Load, *Runs, error) {
	b, end, err := readEvents(in)
	if err != nil {
		return nil, nil, err
	}
	l, err := b.replayable(end)
	return l, b.keptRuns(end), err
}

// keptRuns are the runs of a recording that finish has ended, by role; nil: it has no events.
func (b *builder) keptRuns(end end) *Runs {
	window := b.now
	if !b.full {
		window = max(b.now, end.footer.EndNS)
	}
	if window <= 0 || len(b.order) == 0 {
		return nil
	}
	lost := float64(max(b.lost, end.footer.LostEvents)) / float64(max(b.events, 1))
	b.tellRequests()
	runs := &Runs{time.Duration(window), lost, map[string][]Run{}, b.requests}
	for _, t := range b.order {
		for _, r := range t.ended {
			runs.pools[t.pool.Name] = append(runs.pools[t.pool.Name],
				Run{time.Duration(r.woken), time.Duration(r.delay), time.Duration(r.response), time.Duration(r.cpu)})
		}
	}
	return runs
}
