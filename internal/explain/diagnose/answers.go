package diagnose

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// clients are those that ask the container over connections.
type clients struct {
	answered int
	last     []answerer // by their connections' Index
}

// answerer is the pool that wrote last to a connection.
type answerer struct {
	pool int
	*schedule.Connection
}

// seen reports whether enough requests are seen to tell of clients.
func (c *clients) seen() bool { return c.answered >= leastAnswers }

// ask is how often clients ask a pool: by its requests where they are seen, else by its wake-ups from outside.
func (c *clients) ask(p *pool) int {
	if c.seen() {
		return p.answered
	}
	return p.woken.outside
}

// closedLoop reports whether most requests that a pool answers come from connections with a closed loop, and their mean gap.
func (c *clients) closedLoop(pool int) (gap time.Duration, closed bool) {
	requests, atOnce, gaps, loops := 0, 0, time.Duration(0), 0
	for _, last := range c.last {
		if last.Connection == nil || last.pool != pool {
			continue
		}
		loop := last.Loop()
		if requests += loop.Requests; loop.Closed() {
			loops, atOnce, gaps = loops+loop.Requests, atOnce+loop.AtOnce, gaps+loop.Gaps
		}
	}
	return gaps / time.Duration(max(1, atOnce)), 2*loops > requests
}

// sent counts a request for the pool that begins its answer.
func (a *Analysis) sent(c *schedule.Change) {
	pool := a.threads[c.Thread.Index].pool
	for len(a.clients.last) <= c.Connection.Index {
		a.clients.last = append(a.clients.last, answerer{})
	}
	if a.clients.last[c.Connection.Index] = (answerer{pool, c.Connection}); c.Connection.Writes == 1 {
		a.clients.answered++
		a.pools.all[pool].answered++
	}
}

const (
	// leastAnswers is how many answers tell who serves.
	leastAnswers = 20
	// answersShare is the share of them from which on a pool serves.
	answersShare = 0.1
	// served is the share of a pool's wake-ups by clients and devices from which on it serves, where no answers tell: the
	// rest are locks that its threads hand on.
	served = 1.0 / 3
)

// serves reports whether somebody outside of the container waits for a pool's work: it answers requests. Where too few
// are seen, clients or devices begin its work.
func (p *pool) serves(recorded *figures) bool {
	if recorded.answered >= leastAnswers {
		return p.answers(recorded)
	}
	return p.doesWork(recorded) && p.woken.all >= minRuns && float64(p.woken.outside) >= served*float64(p.woken.all)
}

// answers reports whether a pool is seen to answer requests.
func (p *pool) answers(recorded *figures) bool {
	return recorded.answered >= leastAnswers && float64(p.answered) >= answersShare*float64(recorded.answered)
}
