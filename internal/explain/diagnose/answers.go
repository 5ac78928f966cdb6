package diagnose

import "github.com/unthrottle/unthrottle/internal/see/recording"

// maxAsked bounds the connections that wait for an answer.
const maxAsked = 1 << 14

// onReceive begins a request on a connection.
func (a *Analysis) onReceive(e *recording.Event) {
	if len(a.asked) < maxAsked {
		a.asked[e.Socket] = struct{}{}
	}
}

// onSend counts the answer to the connection's request for the pool that writes it. See package requests for what a
// request is; here the first write after a read is enough, because who answers is asked and not when.
func (a *Analysis) onSend(e *recording.Event) {
	t := a.threads[e.Thread]
	if _, asked := a.asked[e.Socket]; t == nil || !asked {
		return
	}
	delete(a.asked, e.Socket)
	a.pools.all[t.pool].answered++
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
func (p *pool) serves(of *figures) bool {
	if of.answered >= leastAnswers {
		return p.answers(of)
	}
	return p.doesWork(of) && p.woken.all >= minRuns && float64(p.woken.outside) >= served*float64(p.woken.all)
}

// answers reports whether a pool is seen to answer requests.
func (p *pool) answers(of *figures) bool {
	return of.answered >= leastAnswers && float64(p.answered) >= answersShare*float64(of.answered)
}
