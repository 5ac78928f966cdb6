package forecast

import (
	"slices"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

const (
	// minRuns is how many responses a pool must have in a recording to be judged, and how many wake-ups from outside show
	// that it answers.
	minRuns = 20
	// leastAsked is the share of a pool's wake-ups that clients, devices and timers must make for something to wait
	// for it at all.
	leastAsked = 0.1
)

// waiting is the index of the pool whose responses decide where no requests are seen; -1: nothing waits for the container,
// or no pool has minRuns responses. It is the one that clients and devices wake most often; where they wake none, the one
// that timers do. A runtime's housekeeping, which no request waits for, is never it.
func (l *Load) waiting() int {
	table := threadpool.Known()
	best := -1
	for i, p := range l.Pools {
		if !p.asked() || p.recorded.Response.Count() < minRuns || housekeeping(table, p.comm) {
			continue
		}
		if best < 0 || more(p.woken, l.Pools[best].woken) {
			best = i
		}
	}
	return best
}

// more reports whether more waits for one pool than for another.
func more(a, b wakeups) bool {
	if a.outside != b.outside && max(a.outside, b.outside) >= minRuns {
		return a.outside > b.outside
	}
	return a.timer > b.timer
}

// housekeeping reports whether threads of that name are known as a runtime's own, or as ones that work in the background.
func housekeeping(table *threadpool.Table, comm string) bool {
	return slices.ContainsFunc(table.Match(comm, nil), func(r threadpool.Row) bool {
		return r.Class == threadpool.VM || r.Class == threadpool.Background
	})
}

// asked reports whether clients, devices or timers wake a pool as those of a service do. The processes of a build begin
// each other, and hardly anything else wakes them. Processes that began during the recording do not tell.
func (p *Pool) asked() bool {
	n := p.older.outside + p.older.timer
	return n >= minRuns && float64(n) >= leastAsked*float64(p.older.all())
}
