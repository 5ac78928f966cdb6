package forecast

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Kind tells requests apart: who answers them, and how much work they are. Health checks and the inferences that one
// server answers are two kinds: a quantile of both together says nothing of either.
type Kind struct {
	// Pool is the name of the pool of the threads that answer; "": any.
	Pool string
	// From and To bound the CPU time of the thread that answers; 0: no bound.
	From, To time.Duration
	// Closed: clients with a closed loop are among them.
	Closed bool
}

// String says what tells the kind apart; "": nothing, they are all requests.
func (k Kind) String() string {
	var parts []string
	if k.Pool != "" {
		parts = append(parts, "answered by "+text.Sanitize(k.Pool, 0))
	}
	switch {
	case k.From > 0:
		parts = append(parts, "of "+text.Duration(k.From.Round(10*time.Microsecond))+" of CPU time and more")
	case k.To > 0:
		parts = append(parts, "of less than "+text.Duration(k.To.Round(10*time.Microsecond))+" of CPU time")
	}
	return strings.Join(parts, ", ")
}

// has reports whether a request is of the kind.
func (k Kind) has(r *recordedRequest) bool {
	return (k.Pool == "" || r.pool.Name == k.Pool) && r.work >= k.From && (k.To == 0 || r.work < k.To) && (k.Closed || !r.closed)
}

// kindOf is a kind with the requests of a recording, by index.
type kindOf struct {
	Kind
	requests []int
}

// kinds are those of a recording with enough requests, the one with most first; none: too few requests were seen.
//
// Requests of clients with a closed loop are left out where others are enough: such a client is a batch, which nobody
// waits for request by request.
func (l *Load) kinds() (ofs []kindOf) {
	open := l.requestsOf(Kind{})
	every := Kind{}
	if len(open) < requests.Least {
		every.Closed = true
		open = l.requestsOf(every)
	}
	if len(open) < requests.Least {
		return nil
	}
	pools := map[string]int{}
	for _, i := range open {
		pools[l.requests[i].pool.Name]++
	}
	for name, n := range pools {
		if n < requests.Least {
			continue
		}
		of := every
		if len(pools) > 1 {
			of.Pool = name
		}
		ofs = append(ofs, l.byWork(of)...)
	}
	if len(ofs) == 0 { // of many pools, each with few
		ofs = []kindOf{{every, open}}
	}
	slices.SortFunc(ofs, func(a, b kindOf) int {
		return cmp.Or(cmp.Compare(len(b.requests), len(a.requests)), cmp.Compare(a.String(), b.String()))
	})
	return ofs
}

// requestsOf are the requests of a kind.
func (l *Load) requestsOf(k Kind) (all []int) {
	for i := range l.requests {
		if k.has(&l.requests[i]) {
			all = append(all, i)
		}
	}
	return all
}

const (
	// otherWork is the factor by which the medians of two kinds' work must differ.
	otherWork = 8.0
	// valley is the share of a kind's requests that may lie within a factor of two of the bound between them.
	valley = 0.1
	// leastLarge is how many requests of much more work are a kind of their own. With fewer than requests.Least it is not judged
	// itself. Left among the others, two exports in a hundred requests would be the p99 of all.
	leastLarge = 5
)

// byWork splits a kind in two where the work of its requests has two groups with little between them.
//
// Worked example: 432 health checks take 0.05 to 0.2 ms of CPU time, 96 inferences 20 to 60 ms. The bound is at 2 ms. Work
// that is spread evenly from 1 to 50 ms is one kind.
func (l *Load) byWork(k Kind) []kindOf {
	all := l.requestsOf(k)
	whole := []kindOf{{k, all}}
	works := make([]float64, len(all))
	for i, r := range all {
		works[i] = math.Max(1e3, float64(l.requests[r].work))
	}
	slices.Sort(works)
	bound, widest := 0.0, 2.0 // the widest gap between neighbours, as a factor
	for i := requests.Least; i <= len(works)-leastLarge; i++ {
		if gap := works[i] / works[i-1]; gap > widest {
			bound, widest = math.Sqrt(works[i]*works[i-1]), gap
		}
	}
	if bound == 0 {
		bound = valleyOf(works)
	}
	if bound == 0 {
		return whole
	}
	at, _ := slices.BinarySearch(works, bound)
	low, high := works[:at], works[at:]
	if len(low) < requests.Least || len(high) < leastLarge || high[len(high)/2] < otherWork*low[len(low)/2] {
		return whole
	}
	less, more := k, k
	less.To, more.From = time.Duration(bound), time.Duration(bound)
	if len(high) < requests.Least {
		return []kindOf{{less, l.requestsOf(less)}}
	}
	return []kindOf{{less, l.requestsOf(less)}, {more, l.requestsOf(more)}}
}

// valleyOf is the work around which fewest requests lie, within a factor of two, between two groups; 0: there is no such.
func valleyOf(works []float64) float64 {
	within := func(from, to float64) int {
		a, _ := slices.BinarySearch(works, from)
		b, _ := slices.BinarySearch(works, to)
		return b - a
	}
	best, fewest := 0.0, len(works)
	for at := works[0] * 2; at < works[len(works)-1]/2; at *= math.Sqrt2 {
		below, above, here := within(0, at), within(at, math.Inf(1)), within(at/2, at*2)
		if below >= requests.Least && above >= leastLarge && float64(here) <= valley*float64(min(below, above)) && here < fewest {
			best, fewest = at, here
		}
	}
	return best
}

// KindFigures are the figures of one kind of requests under a remedy, in milliseconds.
type KindFigures struct {
	// P50 and High are the median and the quantile of Forecast.Kinds.
	P50, High float64
}

// KindSeen is a kind of requests in a forecast.
type KindSeen struct {
	Kind
	// Samples is how many the recording has, Quantile the highest that so many a second can tell.
	Samples  int
	Quantile float64
}

// quantileOf is the quantile of requests that are sorted with the slowest first, in milliseconds.
func quantileOf(slowest []answer, q float64) float64 {
	return milliseconds(slowest[len(slowest)-stats.RankOf(len(slowest), q)].took)
}
