package diagnose

import (
	"github.com/unthrottle/unthrottle/internal/see/schedule"
	"github.com/unthrottle/unthrottle/topology"
)

// thread is what an analysis counts of one thread of the container.
type thread struct {
	*schedule.Thread
	pool   int
	class  int
	heldAt int64  // since when a quota holds it back
	seen   [4]int // pools that counted it, +1; 0: none

	total int64 // CPU time in its pool

	// A run is from wake-up to sleep.
	woken  int64 // -1: the recording missed the wake-up
	ran    bool  // since woken
	onAt   int64 // the time since which it runs
	onWide int64 // Analysis.wide at onAt
	cpuRun int64 // CPU time of this run
	wide   int64 // part of cpuRun wider than the limit

	// slept is the end of its last run, and took how long that response took; 0: not known.
	slept, took int64
}

// begin takes a thread that is there from now on.
func (a *Analysis) begin(t *schedule.Thread) {
	for len(a.threads) <= t.Index {
		a.threads = append(a.threads, nil)
	}
	begun := &thread{Thread: t, woken: -1, pool: a.pools.unnamed()}
	a.threads[t.Index] = begun
	a.pools.all[begun.pool].has(1)
}

// classOf returns the class of a list of CPUs. For "" or a malformed list it is the container's.
func (a *Analysis) classOf(list string) int {
	if list == "" {
		return 0
	}
	for i, c := range a.classes {
		if c.list == list {
			return i
		}
	}
	set, err := topology.ParseList(list)
	if err != nil || set.IsEmpty() || len(a.classes) == maxClasses || a.classes[0].cpus.IsSubsetOf(set) && !a.classes[0].cpus.IsEmpty() {
		return 0
	}
	if !a.classes[0].cpus.IsEmpty() {
		set = set.Intersection(a.classes[0].cpus)
	}
	if set.IsEmpty() {
		return 0
	}
	c := &class{list: list, cpus: set}
	for n, cpu := range a.cpus {
		if a.idles(cpu) && c.has(n) {
			c.idle++
		}
	}
	a.classes = append(a.classes, c)
	return len(a.classes) - 1
}

// active counts the thread once for its pool.
func (a *Analysis) active(t *thread) {
	for i, p := range t.seen {
		if p == t.pool+1 {
			return
		}
		if p == 0 {
			t.seen[i] = t.pool + 1
			a.pools.all[t.pool].threads++
			return
		}
	}
}

// move counts that a thread does something else.
func (a *Analysis) move(t *thread, was schedule.Doing) {
	a.leave(t, was)
	if t.Wants() != was.Wants() {
		if t.Wants() {
			a.wanted.n++
		} else {
			a.wanted.n--
		}
	}
	a.enter(t)
}

// leave ends what a thread did.
func (a *Analysis) leave(t *thread, was schedule.Doing) {
	p := a.pools.all[t.pool]
	if was.Wants() {
		p.want(a.now, -1)
	}
	switch was.State {
	case schedule.Runnable:
		a.addWaiters(was.CPU, t, -1)
	case schedule.Running:
		a.endSlice(t)
		p.end(a.now)
	case schedule.Held:
		l := &a.levels.all[was.Level]
		p.waiting.add(quotaReason(l), a.now-t.heldAt)
		p.release(a.now)
		if l.held--; l.held == 0 {
			a.endStop(l)
		}
		a.held--
	}
}

// enter begins what a thread does now.
func (a *Analysis) enter(t *thread) {
	if !t.Wants() {
		return
	}
	a.active(t)
	p := a.pools.all[t.pool]
	p.want(a.now, 1)
	switch t.State {
	case schedule.Runnable:
		a.addWaiters(t.CPU, t, 1)
	case schedule.Running:
		p.begin(a.now)
		t.onAt, t.onWide = a.now, a.wide
		if t.woken >= 0 && !t.ran {
			t.ran = true
			p.delay.add(a.now - t.woken)
		}
	case schedule.Held:
		t.heldAt = a.now
		l := &a.levels.all[t.Level]
		if l.held++; l.held == 1 {
			l.heldAt = a.now
		}
		a.held++
		for _, track := range a.tracks {
			track.heldBack(a.now, t.Level)
		}
		p.hold(a.now)
	}
}

// endSlice adds the time since the thread got its CPU to its run.
func (a *Analysis) endSlice(t *thread) {
	t.cpuRun += a.now - t.onAt
	t.total += a.now - t.onAt
	t.wide += a.wide - t.onWide
	t.onAt, t.onWide = a.now, a.wide
}

// leavePool tells a thread's pool what the thread did in it.
func (a *Analysis) leavePool(t *thread) {
	if t.State == schedule.Running {
		a.endSlice(t)
	}
	p := a.pools.all[t.pool]
	if t.total > 0 {
		p.beside = p.beside || t.TID != t.TGID
		if len(p.byThread) < maxByThread {
			p.byThread = append(p.byThread, t.total)
		}
	}
	t.total = 0
}

// endRun closes a run whose beginning the recording has.
func (a *Analysis) endRun(t *thread) {
	t.slept, t.took = a.now, 0
	if t.woken >= 0 && t.ran {
		t.took = a.now - t.woken
		p := a.pools.all[t.pool]
		p.response.add(a.now - t.woken)
		p.waited.add(a.now - t.woken - t.cpuRun)
		p.cost.add(t.cpuRun, t.wide)
	}
	t.woken, t.ran, t.cpuRun, t.wide = -1, false, 0, 0
}

func quotaReason(l *level) int {
	if l.Own {
		return byOwnQuota
	}
	return byAncestor
}
