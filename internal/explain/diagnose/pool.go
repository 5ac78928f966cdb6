package diagnose

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

// poolKey identifies a pool. Pools of processes with one name are one pool.
type poolKey struct{ process, name string }

// pool has the sums of one thread pool.
type pool struct {
	key      poolKey
	number   int // its index
	threads  int
	cpu      int64
	running  int
	widest   int
	there    int           // threads that it has now
	size     int           // the most that it had at once
	wanted   timeHistogram // threads that run or are runnable
	wantedAt int64         // up to when wanted is counted
	busyAt   int64         // the time since which any of its threads runs
	busy     int64         // time with any thread running
	waiting  waits
	// byThread has the CPU times of threads when they left the pool or the recording ended: the first maxByThread.
	byThread []int64
	beside   bool // a thread that is no main thread was in it
	// realtime and ordinary: some of the threads that it began with come before all others, some do not.
	realtime, ordinary bool
	helper             bool // see SampledPool.Helper

	held    int
	heldAt  int64
	stopped int64 // time with any thread held back
	holds   int   // how often that began

	// CPU time not yet counted for a period, and that of throttled periods, both by track.
	period    [maxTracks]int64
	throttled [maxTracks]int64
	most      [maxTracks]int64 // CPU time of the period with most of it
	large     [maxTracks]int   // throttled periods in which it used more than selfMost of the quota

	delay, response distribution
	waited          distribution // of each run, from wake-up to sleep, without its CPU time
	cost            cost
	answered        int // requests
	woken           wakeups
	cycles          cycles
}

// wakeups counts what ended the sleeps of a pool's threads.
type wakeups struct {
	all int
	// outside counts those by other processes and containers, and by devices.
	outside int
	by      map[int]int // by threads of the container, by the index of their pool
}

func (w *wakeups) add(pool int, outside bool) {
	w.all++
	switch {
	case outside:
		w.outside++
	case pool >= 0:
		if w.by == nil {
			w.by = map[int]int{}
		}
		w.by[pool]++
	}
}

func (p *pool) ran(d int64) {
	p.cpu += d
	for i := range p.period {
		p.period[i] += d
	}
}

func (p *pool) begin(now int64) {
	if p.running == 0 {
		p.busyAt = now
	}
	p.running++
	p.widest = max(p.widest, p.running)
}

func (p *pool) end(now int64) {
	p.running--
	if p.running == 0 {
		p.busy += now - p.busyAt
	}
}

// has counts threads that come or go.
func (p *pool) has(more int) {
	p.there += more
	p.size = max(p.size, p.there)
}

// want counts threads that begin or cease to want a CPU.
func (p *pool) want(now int64, more int) {
	p.wanted.add(now - p.wantedAt)
	p.wantedAt = now
	p.wanted.n += more
}

func (p *pool) hold(now int64) {
	if p.held == 0 {
		p.heldAt = now
		p.holds++
	}
	p.held++
}

func (p *pool) release(now int64) {
	p.held--
	if p.held == 0 {
		p.stopped += now - p.heldAt
	}
}

// poolTable holds a bounded number of pools.
type poolTable struct {
	all   []*pool
	index map[poolKey]int
}

func newPoolTable() poolTable { return poolTable{index: map[poolKey]int{}} }

// find returns the index of a pool, or that of OtherPools once there are too many.
func (t *poolTable) find(process, name string) int {
	key := poolKey{process, name}
	if i, ok := t.index[key]; ok {
		return i
	}
	if len(t.all) >= maxPools-1 {
		key = poolKey{name: otherPools}
		if i, ok := t.index[key]; ok {
			return i
		}
	}
	// The names may be parts of a longer text, which they would keep in memory.
	key = poolKey{strings.Clone(key.process), strings.Clone(key.name)}
	t.all = append(t.all, &pool{key: key, number: len(t.all)})
	t.index[key] = len(t.all) - 1
	return len(t.all) - 1
}

// unnamed is the pool of threads without a name event.
func (t *poolTable) unnamed() int { return t.find("", threadpool.Unnamed) }

// use returns the figures of a pool. withPeriods says that the track knows its periods.
func (p *pool) use(track int, withPeriods bool, measured [reasons]bool) PoolUse {
	u := PoolUse{
		Name: p.key.name, Process: p.key.process, Threads: p.threads, Working: Working(p.byThread, p.cpu),
		Main: !p.beside,
		CPU:  span(p.cpu), Widest: p.widest, Size: p.size, Runnable: p.wanted.most(), RunnableP99: p.wanted.quantile(0.99),
		Delay: p.delay.quantiles(), Response: p.response.quantiles(), Waiting: p.waiting.byReason(measured),
	}
	if withPeriods {
		u.CPUThrottled = new(span(p.throttled[track]))
	}
	return u
}

// Bounds of what counts as a thread that works in a pool.
const (
	workingShare = 0.02
	maxByThread  = 1024
)

// Working is how many threads of a pool did workingShare of its work or more, by their CPU times and that of the pool; at least 1.
func Working[T ~int64](byThread []T, cpu T) int {
	n := 0
	for _, d := range byThread {
		if float64(d) >= workingShare*float64(cpu) {
			n++
		}
	}
	return max(n, 1)
}

func (p *pool) any() bool { return p.threads > 0 || p.cpu > 0 || p.waiting.sum() > 0 }

// cost sums up the runs of a pool by whether they spent most of their CPU time wider than the limit.
type cost struct {
	narrow, wide         int64
	narrowRuns, wideRuns int
	squares              float64 // sum of the squares of all runs' CPU times
}

func (c *cost) add(cpu, wide int64) {
	c.squares += float64(cpu) * float64(cpu)
	if wide*2 > cpu {
		c.wide += cpu
		c.wideRuns++
		return
	}
	c.narrow += cpu
	c.narrowRuns++
}

// typical is the mean CPU time of runs, weighted by their CPU time; 0 without any. Runs that only look for
// work do not shorten it, as they would shorten the plain mean.
func (c *cost) typical() int64 {
	if all := float64(c.narrow) + float64(c.wide); all > 0 {
		return int64(c.squares / all)
	}
	return 0
}

const (
	// minRuns is how many runs of each kind the comparison of the cost of width needs.
	minRuns = 20
	// oneKind is how much larger the mean weighted by CPU time may be than the plain one for runs of one kind. It is
	// twice as large if their lengths are random. Runs of several kinds would compare different work.
	oneKind = 4
)

// width compares the runs within the limit with those above it; nil: there are too few, or they are of several kinds.
func (c *cost) width() *WidthCost {
	runs := c.narrowRuns + c.wideRuns
	if c.narrowRuns < minRuns || c.wideRuns < minRuns || float64(c.typical())*float64(runs) > oneKind*float64(c.narrow+c.wide) {
		return nil
	}
	return &WidthCost{
		Narrow: span(c.narrow / int64(c.narrowRuns)), Wide: span(c.wide / int64(c.wideRuns)),
		NarrowRuns: c.narrowRuns, WideRuns: c.wideRuns,
	}
}
