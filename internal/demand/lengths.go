package demand

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Stop says in how many periods of its own quota a container was stopped for up to Microseconds, and for longer than
// the length before.
type Stop struct {
	Microseconds int64 `parquet:"microseconds,dict" bounds:"(0,1048576]"`
	Periods      int32 `parquet:"periods,dict" bounds:"(0,)"`
}

// shortestStop and longestStop bound the lengths of stops that are told apart: a period is at most a second.
const shortestStop, longestStop = 128 * time.Microsecond, 1 << 20 * time.Microsecond

// Stops counts periods by how long a container was stopped in them.
type Stops struct{ lengths stats.Lengths }

// Add counts a period. One without a stop counts for nothing.
func (s *Stops) Add(stopped time.Duration) {
	if stopped >= time.Microsecond {
		s.lengths.Add(min(max(stopped, shortestStop), longestStop), 1)
	}
}

// List has the lengths that any period had.
func (s *Stops) List() (stops []Stop) {
	for _, l := range s.lengths.All() {
		stops = append(stops, Stop{l.UpTo.Microseconds(), int32(l.Count)})
	}
	return stops
}

// Response says how many runs of threads of one role took up to Microseconds from wake-up to sleep, and longer than the
// length before.
type Response struct {
	Role         string `parquet:"role,dict"`
	Microseconds int64  `parquet:"microseconds,dict" bounds:"(0,67108864]"`
	Count        int32  `parquet:"count" sql:"runs" bounds:"(0,100000000]"`
}

// Request says how many requests took up to Microseconds, and longer than the length before.
type Request struct {
	Microseconds int64 `parquet:"microseconds,dict" bounds:"(0,67108864]"`
	Count        int32 `parquet:"count" sql:"answered" bounds:"(0,100000000]"`
}

// Recorded is what a recording of a container tells beyond the counts.
type Recorded struct {
	Seconds float64
	// Responses are the lengths of the runs by role: by the name of the thread pool.
	Responses map[string][]stats.Length
	// Requests are the lengths of the requests; RequestsSeen: the recording has the reads and writes of sockets.
	Requests     []stats.Length
	RequestsSeen bool
}

// recorded is what the recordings of a slot add up to.
type recorded struct {
	seconds      float64
	roles        map[string]*stats.Lengths
	requests     stats.Lengths
	requestsSeen bool
}

// mostRoles bounds the roles of a row: those with most runs are kept.
const mostRoles = 16

func (r *recorded) add(more Recorded) {
	r.seconds += more.Seconds
	for role, lengths := range more.Responses {
		if role = text.Sanitize(role, maxName); r.roles[role] == nil {
			if r.roles == nil {
				r.roles = map[string]*stats.Lengths{}
			}
			r.roles[role] = &stats.Lengths{}
		}
		for _, l := range lengths {
			r.roles[role].Add(l.UpTo, l.Count)
		}
	}
	for _, l := range more.Requests {
		r.requests.Add(l.UpTo, l.Count)
	}
	r.requestsSeen = r.requestsSeen || more.RequestsSeen
}

// into writes the columns of a row.
func (r *recorded) into(w *Row) {
	w.RecordedSeconds = &r.seconds
	runs := func(role string) (n int) {
		for _, count := range r.roles[role] {
			n += count
		}
		return n
	}
	roles := slices.SortedFunc(maps.Keys(r.roles), func(a, b string) int {
		return cmp.Or(cmp.Compare(runs(b), runs(a)), cmp.Compare(a, b))
	})
	for _, role := range roles[:min(len(roles), mostRoles)] {
		for _, l := range r.roles[role].All() {
			w.Responses = append(w.Responses, Response{role, l.UpTo.Microseconds(), int32(l.Count)})
		}
	}
	if !r.requestsSeen {
		return
	}
	n := int64(0)
	for _, l := range r.requests.All() {
		w.Requests = append(w.Requests, Request{l.UpTo.Microseconds(), int32(l.Count)})
		n += int64(l.Count)
	}
	w.RequestCount = &n
}
