package forecast

import (
	"io"
	"maps"
	"slices"
	"time"
)

// Run is one run of a thread as recorded: the time from its wake-up to its next sleep, and the CPU time in it.
type Run struct{ Response, CPU time.Duration }

// maxRuns bounds the runs that a recording keeps one by one, for all pools together; 24 bytes each.
const maxRuns = 1 << 18

// endedRun is a run of a thread, in ns.
type endedRun struct{ delay, response, cpu int64 }

// keepRun keeps the run that ends now.
func (b *builder) keepRun(t *thread) {
	if b.runs < maxRuns {
		b.runs++
		t.ended = append(t.ended, endedRun{t.delay, b.now - t.woken, t.run})
	}
}

// Runs are the runs of a recording, by pool.
type Runs struct {
	// Window is the length of the recording.
	Window time.Duration
	pools  map[string][]Run
}

// Of are the runs of the pools of that name ("": of all pools), the first maxRuns of the recording.
func (r *Runs) Of(pool string) []Run {
	if pool != "" {
		return r.pools[pool]
	}
	var all []Run
	for _, name := range slices.Sorted(maps.Keys(r.pools)) {
		all = append(all, r.pools[name]...)
	}
	return all
}

// ReadRuns reads the runs of a recording. Other than for Read, the container needs no limit. It returns the errors
// of recording.NewReader, and one if the recording has no events.
func ReadRuns(in io.Reader) (*Runs, error) {
	b, end, err := readEvents(in)
	if err != nil {
		return nil, err
	}
	window := max(b.now, end.footer.EndNS)
	if window <= 0 || len(b.order) == 0 {
		return nil, errEmpty
	}
	b.splitRoles(end.footer)
	runs := &Runs{time.Duration(window), map[string][]Run{}}
	for _, t := range b.order {
		for _, r := range t.ended {
			runs.pools[t.pool.Name] = append(runs.pools[t.pool.Name], Run{time.Duration(r.response), time.Duration(r.cpu)})
		}
	}
	return runs, nil
}
