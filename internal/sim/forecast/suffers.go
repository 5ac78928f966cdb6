package forecast

import "math"

const (
	// minRuns is how many responses a pool must have in a recording for its p99 to be judged, and how many wake-ups
	// from outside show that it answers.
	minRuns = 20
	// leastHurtMs is by how many milliseconds a p99 must fall for its pool to count as hurt; leastHurt is by which
	// factor, for its rank to count.
	leastHurtMs, leastHurt = 0.5, 1.5
	// answering is the share of a pool's wake-ups that clients and devices must make for it to answer them.
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
	answers          // it answers clients and spends little
)

// suffers is the index of the pool whose responses decide between remedies; -1: nothing waits for the container, or no
// pool has minRuns responses.
//
// A pool is hurt by the factor by which its p99 would fall under the best replayed remedy. The p99 must fall by
// leastHurtMs. A factor and no difference: of a batch that takes a second twice as long is a smaller hurt than ten times
// as long of an answer. Among pools hurt by leastHurt or more, one that answers clients and spends little of the quota
// comes before one that spends it, and that before one that timers wake: a stop by another pool's work hurts the first,
// and more CPU would shorten any long run of the second. Within a rank the larger factor decides.
//
// Worked example: limit 0.8 CPUs. Node's event loop is woken 846 times, 756 of them by clients, uses 0.06 CPUs, and its
// p99 of 38 ms would fall to 8 ms: a factor of 5. Its 8 workers use 0.49 CPUs, are woken by the event loop, and their p99
// of 384 ms would fall to 196 ms: a factor of 2. The event loop is judged, and would be with a factor of 1.6 too.
func (m *maker) suffers() int {
	worst, most, shown := -1, hurt{}, -1
	asked := false
	for p, pool := range m.l.Pools {
		asked = asked || pool.asked()
		none, best := m.p99(p)
		if none == nil {
			continue
		}
		if shown < 0 || pool.woken.outside > m.l.Pools[shown].woken.outside {
			shown = p
		}
		h := hurt{m.l.rank(pool), *none / best}
		if *none-best >= leastHurtMs && (worst < 0 || h.before(most)) {
			worst, most = p, h
		}
	}
	switch {
	case !asked:
		return -1
	case worst < 0:
		return shown // none is hurt, and one can be shown
	}
	return worst
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

// before reports whether a pool's responses decide rather than another's.
func (h hurt) before(o hurt) bool {
	much, other := h.factor >= leastHurt, o.factor >= leastHurt
	switch {
	case much != other:
		return much
	case much && h.rank != o.rank:
		return h.rank > o.rank
	}
	return h.factor > o.factor
}

// rank is that of a pool by what wakes it and what it spends.
func (l *Load) rank(p *Pool) int {
	w := p.woken
	switch {
	case 2*w.timer > w.all():
		return keepsTime
	case w.outside >= minRuns && float64(w.outside) >= answering*float64(w.all()) &&
		p.cpu.Seconds() < littleSpent*l.limit*l.window.Seconds():
		return answers
	}
	return works
}

// asked reports whether clients, devices or timers wake a pool as those of a service do. The processes of a build begin
// each other, and hardly anything else wakes them. Processes that began during the recording do not tell.
func (p *Pool) asked() bool {
	n := p.older.outside + p.older.timer
	return n >= minRuns && float64(n) >= leastAsked*float64(p.older.all())
}
