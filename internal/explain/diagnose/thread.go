package diagnose

import (
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/topology"
)

// thread is the state of one thread of the container.
type thread struct {
	tid, tgid uint32
	cgroup    uint64
	pool      int
	comm      string
	state     recording.State
	since     int64 // the beginning of the spell that goes on
	cpu       int32 // the CPU on which it runs, waits or last ran
	class     int
	heldBy    int // index of the level that holds it back while it waits; -1: none
	heldAt    int64
	dying     bool
	seen      [4]int // pools that counted it, +1; 0: none

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

// startThread adds a thread of the header.
func (a *Analysis) startThread(h *recording.Thread) {
	if h.TID == 0 {
		return
	}
	if h.TID == h.TGID {
		a.byTGID[h.TGID] = h.Comm
	}
	if _, ok := a.threads[h.TID]; ok {
		a.contradictions++
		return
	}
	t := a.thread(h.TID)
	if t == nil {
		return
	}
	t.class = a.classOf(h.Allowed)
	t.cpu = h.CPU
	t.cgroup = h.Cgroup
	a.rename(t, h.TGID, h.Comm)
	if h.Realtime != "" {
		a.pools.all[t.pool].realtime = true
	}
	switch h.State {
	case recording.Running:
		if c := a.cpu(h.CPU); c != nil && c.thread == nil {
			a.startRunning(t, h.CPU, c)
			return
		}
		a.setState(t, recording.Runnable)
	case recording.Runnable:
		a.setState(t, recording.Runnable)
	}
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

// thread returns the thread with that id, and makes an unknown one. It returns nil for 0 and beyond
// maxThreads.
func (a *Analysis) thread(tid uint32) *thread {
	if tid == 0 {
		return nil
	}
	if t := a.threads[tid]; t != nil {
		return t
	}
	if len(a.threads) == maxThreads {
		a.unknownThreads++
		return nil
	}
	t := &thread{tid: tid, heldBy: -1, woken: -1, pool: a.pools.unnamed()}
	a.threads[tid] = t
	return t
}

// wants reports whether a thread in that state wants a CPU.
func wants(s recording.State) bool { return s == recording.Runnable || s == recording.Running }

// setState moves a thread between states in which it does not run.
func (a *Analysis) setState(t *thread, s recording.State) {
	if t.state == s {
		return
	}
	a.endSpell(t)
	if t.state == recording.Runnable {
		a.unhold(t)
		a.addWaiters(t.cpu, t.pool, t.class, -1)
	}
	if wants(s) != wants(t.state) {
		if wants(s) {
			a.wanted.n++
		} else {
			a.wanted.n--
		}
	}
	t.state = s
	if s == recording.Runnable {
		a.active(t)
		a.addWaiters(t.cpu, t.pool, t.class, 1)
	}
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

// startRunning gives a thread a CPU that its holder has given up.
func (a *Analysis) startRunning(t *thread, n int32, c *cpu) {
	if t.state == recording.Running {
		if c.thread == t {
			return
		}
		// The last event had it running elsewhere: the next holder of that CPU is unknown.
		a.leaveUnseen(t)
	}
	a.setState(t, recording.Sleeping) // takes it out of the queue in which it waits
	a.endSpell(t)
	a.setHolder(n, c, true, t, 0)
	t.state, t.cpu = recording.Running, n
	a.wanted.n++
	a.active(t)
	a.pools.all[t.pool].begin(a.now)
	t.onAt, t.onWide = a.now, a.wide
	if t.woken >= 0 && !t.ran {
		t.ran = true
		a.pools.all[t.pool].delay.add(a.now - t.woken)
	}
}

// stopRunning takes a running thread from its CPU, and puts it into state. The caller sets the CPU's next holder.
func (a *Analysis) stopRunning(t *thread, state recording.State) {
	c := a.cpus[t.cpu]
	if c.thread == t {
		a.countHolder(c)
		c.thread = nil
	}
	a.endSpell(t)
	a.endSlice(t)
	a.pools.all[t.pool].end(a.now)
	a.wanted.n--
	t.state = recording.Sleeping
	if state == recording.Runnable {
		a.setState(t, recording.Runnable)
	}
}

// leaveUnseen takes a running thread from a CPU that it must have left unseen. The new holder of the CPU is
// unknown.
func (a *Analysis) leaveUnseen(t *thread) {
	a.contradictions++
	n := t.cpu
	a.stopRunning(t, recording.Sleeping)
	a.setHolder(n, a.cpus[n], false, nil, rootOwner)
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
	if t.state == recording.Running {
		a.endSlice(t)
	}
	p := a.pools.all[t.pool]
	if t.total > 0 {
		p.beside = p.beside || t.tid != t.tgid
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

// hold marks a waiting thread as held back by a level.
func (a *Analysis) hold(t *thread, level int) {
	if t.state != recording.Runnable {
		a.contradictions++
		return
	}
	if t.heldBy == level {
		return
	}
	a.endSpell(t)
	if t.heldBy >= 0 {
		a.unhold(t)
	}
	// From here on it waits for the quota, not for the CPU.
	a.addWaiters(t.cpu, t.pool, t.class, -1)
	t.heldBy, t.heldAt = level, a.now
	l := &a.levels.all[level]
	if l.held++; l.held == 1 {
		l.heldAt = a.now
	}
	a.held++
	for _, track := range a.tracks {
		track.heldBack(a.now, level)
	}
	a.pools.all[t.pool].hold(a.now)
}

// unhold ends the throttling of a waiting thread, which waits for a CPU again.
func (a *Analysis) unhold(t *thread) {
	if t.heldBy < 0 {
		return
	}
	a.endSpell(t)
	l := &a.levels.all[t.heldBy]
	p := a.pools.all[t.pool]
	p.waiting.add(quotaReason(l), a.now-t.heldAt)
	p.release(a.now)
	if l.held--; l.held == 0 {
		a.endStop(l)
	}
	a.held--
	t.heldBy = -1
	a.addWaiters(t.cpu, t.pool, t.class, 1)
}

func quotaReason(l *level) int {
	if l.own {
		return byOwnQuota
	}
	return byAncestor
}

// forget forgets a thread.
func (a *Analysis) forget(t *thread) {
	if t.state == recording.Running {
		a.stopRunning(t, recording.Sleeping)
	}
	a.setState(t, recording.Sleeping)
	a.endRun(t)
	a.leavePool(t)
	delete(a.threads, t.tid)
}
