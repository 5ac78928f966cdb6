package forecast

import (
	"io"
	"time"
)

// Run is one run of a thread as recorded: the time from its wake-up to its next sleep, and the CPU time in it.
type Run struct{ Response, CPU time.Duration }

// maxRuns bounds the runs that a recording keeps one by one, for all pools together; 16 bytes each.
const maxRuns = 1 << 18

// Runs are the runs of a recording, by pool.
type Runs struct {
	// Window is the length of the recording.
	Window time.Duration
	pools  []*Pool
}

// Of are the runs of the pools of that name ("": of all pools), the first maxRuns of the recording.
func (r *Runs) Of(pool string) []Run {
	var all []Run
	for _, p := range r.pools {
		if pool == "" || p.Name == pool {
			all = append(all, p.runs...)
		}
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
	if window := max(b.now, end.footer.EndNS); window > 0 && len(b.order) > 0 {
		return &Runs{time.Duration(window), b.measured}, nil
	}
	return nil, errEmpty
}
