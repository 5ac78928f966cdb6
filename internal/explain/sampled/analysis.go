package sampled

import (
	"cmp"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// Analysis turns samples into the figures of a diagnosis. It is not safe for concurrent use.
type Analysis struct {
	target  Target
	quotas  []quota
	lead    int // the level whose periods count: that with the least limit; -1: no level has one
	limit   float64
	keep    time.Duration
	threads map[key]*thread
	pools   []*pool
	index   map[poolKey]int
	first   *Sample       // with the CPU time; without threads
	before  *Sample       // without threads
	begun   time.Duration // the episode: what was before it is not counted
	round   int           // counts episodes
	steps   []*step       // whose waiting may still grow, in the order of time
	stops   []*stop
	row     row
	sums    sums
	hidden  *hidden // nil: no such stops
	unknown bool    // limits could not be read
	unread  int     // threads beyond MaxThreads
	samples int
}

type key struct{ pid, tid uint32 }

type poolKey struct{ process, name string }

// thread is a thread as it was in the last sample.
type thread struct {
	Thread
	pool  int
	round int           // the last episode in which it was seen
	at    time.Duration // when it last did something
	total time.Duration // CPU time
}

// quota is one level's.
type quota struct {
	period, quota time.Duration // quota 0: none
	gained        diagnose.SampledCounters
	read          bool
}

// Of analyses samples.
func Of(t Target, log []Sample) *Analysis {
	found := findHidden(&t, log)
	unknown := len(t.Levels) == 0
	if found != nil && !found.own {
		if unknown {
			t.Levels = []recording.Level{{Path: t.Path}} // its own, in front of those above
		}
		t.Levels = append(slices.Clone(t.Levels), recording.Level{}) // neither path nor limit are known
	}
	a := New(t)
	a.unknown = unknown
	if a.hidden = found; found != nil && !found.own {
		a.quotas[len(a.quotas)-1].read = true
	}
	for i := range log {
		a.Add(&log[i])
	}
	return a
}

// New begins an analysis.
func New(t Target) *Analysis {
	a := &Analysis{target: t, unknown: len(t.Levels) == 0, lead: -1, threads: map[key]*thread{}, index: map[poolKey]int{}}
	longest := time.Duration(0)
	for i, l := range t.Levels {
		q := quota{period: time.Duration(l.PeriodNS)}
		if l.QuotaNS != nil && *l.QuotaNS > 0 && l.PeriodNS > 0 {
			q.quota = time.Duration(*l.QuotaNS)
			longest = max(longest, q.period)
			if cpus := float64(q.quota) / float64(q.period); a.lead < 0 || cpus < a.limit {
				a.lead, a.limit = i, cpus
			}
		}
		a.quotas = append(a.quotas, q)
	}
	a.keep = keepFor * cmp.Or(longest, bandwidth.DefaultPeriod)
	return a
}

// Add takes the next sample. One that is not later than the one before is left out.
func (a *Analysis) Add(s *Sample) {
	if a.before != nil && s.At <= a.before.At {
		return
	}
	a.samples++
	if a.before == nil || s.Apart {
		a.flush(s.At)
		a.baseline(s)
		return
	}
	st := &step{from: a.before.At, to: s.At}
	a.counters(s, st)
	a.follow(s, st)
	a.steps = append(a.steps, st)
	a.waits(st)
	a.settle(s.At - a.keep)
	a.remember(s)
}

// baseline begins an episode.
func (a *Analysis) baseline(s *Sample) {
	a.round++
	for i := range s.Threads {
		t := a.thread(&s.Threads[i])
		if t != nil {
			t.Thread, t.round, t.at = s.Threads[i], a.round, s.At
		}
	}
	a.row, a.begun = row{partial: true}, s.At
	for _, p := range a.pools {
		p.inRow = 0
	}
	a.remember(s)
}

func (a *Analysis) remember(s *Sample) {
	before := *s
	before.Threads = nil
	a.before = &before
	if a.first == nil && s.Used != nil {
		a.first = &before
	}
}

// thread returns a thread, new or known; nil: there are too many.
func (a *Analysis) thread(now *Thread) *thread {
	k := key{now.PID, now.TID}
	t, ok := a.threads[k]
	if !ok {
		if len(a.threads) >= MaxThreads && a.before != nil {
			a.forget()
		}
		if len(a.threads) >= MaxThreads {
			a.unread++
			return nil
		}
		t = &thread{pool: -1}
		a.threads[k] = t
	}
	if t.pool < 0 || t.Comm != now.Comm {
		a.leave(t)
		t.pool = a.pool(now)
		a.pools[t.pool].threads++
	}
	if a.target.Serves == nil || a.target.Serves(now.PID) {
		a.pools[t.pool].serves = true
	}
	if now.TID != now.PID {
		a.pools[t.pool].beside = true
	}
	return t
}

// forget removes threads that did nothing for long: most of them are no longer there.
func (a *Analysis) forget() {
	for k, t := range a.threads {
		if t.round < a.round-1 || t.at < a.before.At-a.keep {
			a.leave(t)
			delete(a.threads, k)
		}
	}
}

// leave tells a thread's pool what the thread used in it.
func (a *Analysis) leave(t *thread) {
	if t.pool >= 0 && t.total > 0 {
		p := a.pools[t.pool]
		if len(p.byThread) < MaxThreads {
			p.byThread = append(p.byThread, t.total)
		}
	}
	t.total = 0
}

// pool returns the index of a thread's pool.
func (a *Analysis) pool(t *Thread) int {
	k := poolKey{name: threadpool.Fold(t.Comm)}
	if a.target.PoolOf != nil {
		k.name = a.target.PoolOf(t.TID, t.PID, t.Comm)
	}
	if a.target.Process != nil {
		k.process = a.target.Process(t.PID)
	}
	i, ok := a.index[k]
	if !ok && len(a.pools) >= MaxPools-1 {
		k = poolKey{name: threadpool.Other}
		i, ok = a.index[k]
	}
	if !ok {
		i = len(a.pools)
		a.index[k] = i
		a.pools = append(a.pools, &pool{key: k})
	}
	return i
}

// counters takes what the levels' counters gained: a period's end, and the end of a stop.
func (a *Analysis) counters(s *Sample, st *step) {
	st.stopBy = -1
	for i := range a.quotas {
		if i >= len(s.Counters) || i >= len(a.before.Counters) || s.Counters[i] == nil || a.before.Counters[i] == nil {
			continue
		}
		was, is, q := a.before.Counters[i], s.Counters[i], &a.quotas[i]
		if is.Periods < was.Periods || is.ThrottledPeriods < was.ThrottledPeriods || is.Throttled < was.Throttled {
			continue // of another cgroup by this path
		}
		q.read = true
		q.gained.Periods += is.Periods - was.Periods
		q.gained.ThrottledPeriods += is.ThrottledPeriods - was.ThrottledPeriods
		if i == a.lead {
			st.ended, st.throttled = is.Periods > was.Periods, is.ThrottledPeriods > was.ThrottledPeriods
		}
		// The nearest quota is the one that held the threads back: above it nothing of theirs was left to hold.
		if gained := is.Throttled - was.Throttled; gained > 0 && st.stopBy < 0 {
			st.stopBy, st.stopped = i, gained
		}
	}
	if h := a.hidden; h != nil {
		ended := h.ended(s.At)
		if st.stopBy < 0 && ended {
			st.stopBy, st.stopped = len(a.quotas)-1, a.keep
		}
		if h.own { // one limit, and the periods are those of the quota that stops it
			st.ended, st.throttled = h.expired(a.before.At, s.At), ended
			if ended {
				st.stopBy = 0
				a.quotas[0].gained.ThrottledPeriods++
			}
		}
	}
	if s.Used != nil && a.before.Used != nil {
		st.used = max(0, *s.Used-*a.before.Used)
		st.usedKnown = true
	}
}

// follow takes what the threads gained.
func (a *Analysis) follow(s *Sample, st *step) {
	for i := range s.Threads {
		now := &s.Threads[i]
		t := a.thread(now)
		if t == nil {
			continue
		}
		was, known := t.Thread, t.round == a.round
		t.Thread, t.round, t.at = *now, a.round, s.At
		if !known || now.Ran < was.Ran || now.Waited < was.Waited || now.Runs < was.Runs {
			if now.Ran > st.to-st.from+tick || now.Waited > a.keep {
				continue // it is older than the sample: what it did before is not of this one
			}
			was = Thread{} // born since
		}
		g := gain{pool: t.pool, ran: now.Ran - was.Ran, waited: now.Waited - was.Waited, runs: now.Runs - was.Runs}
		if g.ran == 0 && g.waited == 0 {
			continue
		}
		t.total += g.ran
		p := a.pools[t.pool]
		p.cpu += g.ran
		st.gains = append(st.gains, g)
		// A thread runs no longer than the time goes: the rest is of the ticks before.
		if late := g.ran - (st.to - st.from); late > 0 && len(a.steps) > 0 {
			st.gains[len(st.gains)-1].ran -= late
			last := a.steps[len(a.steps)-1]
			last.gains = append(last.gains, gain{pool: t.pool, ran: late, late: true})
		}
	}
}

// Finish ends the analysis. hostUsed is the CPU time that all tasks of the host used over the samples; nil: not known.
func (a *Analysis) Finish(hostUsed *time.Duration) diagnose.Sampled {
	if a.before != nil {
		a.flush(a.before.At)
	}
	for _, t := range a.threads {
		a.leave(t)
	}
	return a.result(hostUsed)
}

// Unread is how many readings of threads were left out, because there are too many.
func (a *Analysis) Unread() int { return a.unread }

// Hidden is how many stops by a quota that is not visible were found.
func (a *Analysis) Hidden() int {
	if a.hidden == nil {
		return 0
	}
	return len(a.hidden.ends)
}

// Samples is how many samples were taken.
func (a *Analysis) Samples() int { return a.samples }

// Long says in how many stretches of LongestPeriod the limit was used up: in so many the same limit with that period would have
// stopped the container.
func (a *Analysis) Long() (full, all int) { return a.sums.long.full, a.sums.long.all }

// flush settles all that is pending: the next sample is no continuation.
func (a *Analysis) flush(at time.Duration) {
	a.settle(at + a.keep)
	a.stops = nil
}

// settle ends the samples before a time: no waiting that is yet to be counted reaches back to them.
func (a *Analysis) settle(before time.Duration) {
	n := 0
	for n < len(a.steps) && (a.steps[n].to <= before || len(a.steps)-n > maxPending) {
		a.count(a.steps[n])
		n++
	}
	a.steps = slices.Delete(a.steps, 0, n)
	a.stops = slices.DeleteFunc(a.stops, func(s *stop) bool {
		if s.to > before {
			return false
		}
		a.end(s)
		return true
	})
}
