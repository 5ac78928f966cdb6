package forecast

import (
	"math"

	"github.com/unthrottle/unthrottle/internal/explain/requests"
)

const (
	// minRuns is how many responses a pool must have in a recording for its p99 to be judged, and how many wake-ups
	// from outside show that it answers.
	minRuns = 20
	// leastHurtMs is by how many milliseconds a p99 must fall for its pool to count as hurt. leastHurt is the factor from
	// which on its rank counts, or nearlyAll of what the pool that is hurt most loses beyond its best.
	leastHurtMs, leastHurt, nearlyAll = 0.5, 1.5, 0.5
	// answering is the share of a pool's wake-ups that clients and devices must make for it to answer them, or those who
	// hand their work on for it to be handed that.
	// littleSpent is the share of the limit that it may use.
	answering   = 1.0 / 3
	littleSpent = 0.5
	// leastAsked is the share of a pool's wake-ups that clients, devices and timers must make for something to wait
	// for the container at all.
	leastAsked = 0.1
)

// The ranks of pools among those that are hurt.
const (
	keepsTime = iota // most of its wake-ups are of timers
	works            // it works for other pools of the container, or spends much of the quota
	handed           // a pool that clients wake hands their requests on to it, and it spends little
	answers          // it answers clients and spends little
)

// suffers is the index of the pool whose responses decide between remedies; -1: nothing waits for the container, or no
// pool has minRuns responses.
//
// A pool is hurt by the factor by which its p99 would fall under the best replayed remedy. The p99 must fall by
// leastHurtMs. A factor and no difference: of a batch that takes a second twice as long is a smaller hurt than ten times
// as long of an answer. Which of several decides, mostHurt says: a stop by another pool's work hurts one that answers and
// spends little, and more CPU would shorten any long run of one that spends.
//
// Worked example: limit 0.8 CPUs. Node's event loop is woken 846 times, 756 of them by clients, uses 0.06 CPUs, and its
// p99 of 38 ms would fall to 8 ms: a factor of 5. Its 8 workers use 0.49 CPUs, are woken by the event loop, and their p99
// of 384 ms would fall to 196 ms: a factor of 2. The event loop is judged, and would be with a factor of 1.6 too.
func (m *maker) suffers() int {
	var pools []int
	var hurts []hurt
	asked, shown := false, -1
	for p, pool := range m.l.Pools {
		asked = asked || pool.asked()
		none, best := m.p99(p)
		if none == nil {
			continue
		}
		if shown < 0 || pool.woken.outside > m.l.Pools[shown].woken.outside {
			shown = p
		}
		if *none-best >= leastHurtMs {
			pools, hurts = append(pools, p), append(hurts, hurt{m.l.rank(pool), *none / best})
		}
	}
	switch {
	case !asked:
		return -1
	case len(hurts) == 0:
		return shown // none is hurt, and one can be shown
	}
	return pools[mostHurt(hurts)]
}

// p99 returns the p99 of a pool's responses without a remedy and the least under any replayed one, in milliseconds; nil:
// there are too few responses.
func (m *maker) p99(pool int) (none *float64, best float64) {
	best = math.Inf(1)
	for i := range m.f.Rows {
		row := &m.f.Rows[i]
		if m.all[i] == nil || row.HostLoad != 0 || row.Remedy.Modelled() || row.Remedy.parts() != nil {
			continue
		}
		of := row.Figures.Pools[pool].Response
		if row.Remedy.Name == None && of.Count >= uint64(minRuns*m.seeds) {
			none = of.P99
		}
		if of.P99 != nil {
			best = math.Min(best, *of.P99)
		}
	}
	return none, best
}

// hurt is how much a pool suffers.
type hurt struct {
	rank   int
	factor float64
}

// mostHurt is the index of the pool that decides: of those whose rank counts the highest rank, of these the largest factor,
// of these the first. The rank of a pool counts from a factor of leastHurt on, or if it loses nearlyAll of what the one
// that is hurt most does. There must be one.
//
// Worked example: few stops in a recording; the p99 of the event loop is 1.46 times its best, that of the workers 1.49
// times. Both ranks count, and the event loop decides. With factors of 1.1 and 1.49 the workers do.
func mostHurt(all []hurt) int {
	most := 1.0
	for _, h := range all {
		most = math.Max(most, h.factor)
	}
	counts := math.Min(leastHurt, 1+nearlyAll*(most-1))
	worst := -1
	for i, h := range all {
		switch {
		case h.factor < counts:
		case worst < 0, h.rank > all[worst].rank, h.rank == all[worst].rank && h.factor > all[worst].factor:
			worst = i
		}
	}
	return worst
}

// rank is that of a pool by what wakes it and what it spends.
//
// Worked example: HTTP-Dispatcher reads requests and is woken by clients; it wakes the threads pool-1-thread-* 772 of
// their 1,109 times: these are handed the requests. They wake the virtual machine's own thread, and that the collector's:
// both work for the container. Responses of threads that are handed requests begin then, and not with the client's data.
// So that rank needs a recording with requests: without, these responses had a p99 of 33 ms where clients waited 325 ms, as
// the collector stops all threads at once, and the collector's own had 186 ms.
func (l *Load) rank(p *Pool) int {
	w := p.woken
	switch {
	case 2*w.timer > w.all():
		return keepsTime
	case l.little(p) && p.reached():
		return answers
	case l.little(p) && len(l.requests) >= requests.Least && p.handedOn():
		return handed
	}
	return works
}

// little reports whether a pool spends little of the quota.
func (l *Load) little(p *Pool) bool {
	return p.cpu.Seconds() < littleSpent*l.limit*l.window.Seconds()
}

// serves reports whether clients wait for a pool that spends little: it answers them, or their requests are handed on to it.
// Its responses need not be whole requests to tell whether these take longer under a remedy.
func (l *Load) serves(p *Pool) bool {
	return 2*p.woken.timer <= p.woken.all() && l.little(p) && (p.reached() || p.handedOn())
}

// reached reports whether clients and devices wake a pool as those of a service do.
func (p *Pool) reached() bool { return p.mostly(p.woken.outside) }

// handedOn reports whether pools that clients wake do wake this one.
func (p *Pool) handedOn() bool {
	n := 0
	for by, wakes := range p.wokenBy {
		if by != p && by.reached() {
			n += wakes
		}
	}
	return p.mostly(n)
}

// mostly reports whether so many wake-ups show who begins a pool's work. A wake-up by a pool to which it handed work is
// that work's answer, and begins none.
//
// Worked example: clients wake HTTP-Dispatcher 634 of 2,039 times. It wakes the request threads 772 times, and they wake it
// 1,373 times, 772 of them with an answer: clients begin half of its work.
func (p *Pool) mostly(n int) bool {
	begin := p.woken.all()
	for by, wakes := range p.wokenBy {
		if by != p {
			begin -= min(wakes, by.wokenBy[p])
		}
	}
	return n >= minRuns && float64(n) >= answering*float64(begin)
}

// asked reports whether clients, devices or timers wake a pool as those of a service do. The processes of a build begin
// each other, and hardly anything else wakes them. Processes that began during the recording do not tell.
func (p *Pool) asked() bool {
	n := p.older.outside + p.older.timer
	return n >= minRuns && float64(n) >= leastAsked*float64(p.older.all())
}
