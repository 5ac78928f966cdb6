package diagnose

import (
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func (a *Analysis) onSwitch(e *recording.Event) {
	a.switches++
	c := a.cpu(e.CPU)
	if c == nil {
		return
	}
	prev := a.thread(e.Thread)
	if c.thread != nil && c.thread != prev {
		// The recording missed its switch, and whether it still wants a CPU.
		a.contradictions++
		lost := c.thread
		a.stopRunning(lost, recording.Sleeping)
		a.endRun(lost)
	}
	if prev != nil {
		a.switchedOut(prev, c, e)
	}
	if e.NextThread == 0 {
		if e.Thread != 0 && e.Flags&(recording.PrevRunnable|recording.Throttled) == recording.PrevRunnable && e.NextOwner != recording.Idle {
			a.preempted++
		}
		a.setHolder(e.CPU, c, false, nil, a.owners.index(e.NextOwner))
		return
	}
	next := a.thread(e.NextThread)
	if next == nil {
		a.setHolder(e.CPU, c, true, nil, 0)
		return
	}
	if c.thread == next {
		return
	}
	if next.state == recording.Runnable && next.woken >= 0 && !next.ran {
		if early := a.now - next.woken; e.Thread == 0 && e.Owner == recording.Idle || early <= preemptsWithin {
			a.chargedEarly += early
		}
	}
	a.startRunning(next, e.CPU, c)
}

// switchedOut takes a CPU from the thread that gave it up. If the thread was not known to run, the recording
// missed its start.
func (a *Analysis) switchedOut(t *thread, c *cpu, e *recording.Event) {
	if t.state == recording.Running && c.thread != t {
		a.leaveUnseen(t)
	}
	runnable := e.Flags&recording.PrevRunnable != 0 && !t.dying
	state := recording.Sleeping
	if runnable {
		state = recording.Runnable
	}
	if t.state == recording.Running {
		a.stopRunning(t, state)
	} else {
		t.cpu = e.CPU
		a.setState(t, state)
	}
	switch {
	case t.dying:
		a.forget(t)
	case runnable && e.Flags&recording.Throttled != 0:
		a.hold(t, a.levels.levelOf(e.Cgroup))
	case !runnable:
		a.endRun(t)
	}
}

func (a *Analysis) onWakeup(e *recording.Event) {
	t := a.thread(e.Thread)
	if t == nil {
		return
	}
	// The wake-up is spurious, or repeats one whose dequeue the kernel delayed: the thread wants a CPU
	// already.
	if wants(t.state) || t.dying {
		return
	}
	a.countWakeup(t, e)
	t.cpu = e.CPU
	t.woken, t.ran, t.cpuRun, t.wide = a.now, false, 0, 0
	a.setState(t, recording.Runnable)
	if e.Flags&recording.Throttled != 0 {
		a.hold(t, a.levels.levelOf(e.Cgroup))
	}
}

// countWakeup notes what woke a thread: one of the container, a timer, or something outside of it. The start of a
// thread is no wake-up.
func (a *Analysis) countWakeup(t *thread, e *recording.Event) {
	if e.Flags&recording.New != 0 {
		return
	}
	pool := -1
	if waker := a.threads[e.Waker]; e.Waker != 0 && waker != nil {
		pool = waker.pool
	}
	p, outside := a.pools.all[t.pool], e.Waker == 0 && e.Owner != recording.Kernel
	p.woken.add(pool, outside)
	if outside {
		t.asked(p, a.now)
	}
	if e.Waker == 0 {
		a.owners.all[a.owners.index(e.Owner)].wakes++
	}
}

func (a *Analysis) onMigrate(e *recording.Event) {
	t := a.threads[e.Thread]
	if t == nil || t.state == recording.Running || e.CPU < 0 || e.CPU >= maxCPUs {
		return
	}
	if t.state == recording.Runnable && t.heldBy < 0 {
		a.addWaiters(t.cpu, t.pool, t.class, -1)
		a.addWaiters(e.CPU, t.pool, t.class, 1)
	}
	t.cpu = e.CPU
}

// onExit handles an exit, whose last switch may come before or after it.
func (a *Analysis) onExit(e *recording.Event) {
	t := a.threads[e.Thread]
	if t == nil {
		return
	}
	if t.state == recording.Running {
		t.dying = true
		return
	}
	a.forget(t)
}

func (a *Analysis) onName(e *recording.Event) {
	if e.Thread != 0 && e.Thread == e.TGID && len(a.byTGID) < maxThreads {
		a.byTGID[e.TGID] = e.Text
	}
	if t := a.thread(e.Thread); t != nil {
		if e.Cgroup != 0 {
			t.cgroup = e.Cgroup
		}
		a.rename(t, e.TGID, e.Text)
	}
}

func (a *Analysis) onEnter(e *recording.Event) {
	a.onName(e)
}

// onLeave handles a thread that leaves the container while it runs or waits.
func (a *Analysis) onLeave(e *recording.Event) {
	t := a.threads[e.Thread]
	if t == nil {
		return
	}
	if t.state == recording.Running {
		n := t.cpu
		a.stopRunning(t, recording.Sleeping)
		a.setHolder(n, a.cpus[n], false, nil, a.owners.index(e.Owner))
	}
	a.forget(t)
}

func (a *Analysis) onHold(e *recording.Event) {
	t := a.threads[e.Thread]
	if t == nil {
		a.contradictions++
		return
	}
	a.hold(t, a.levels.levelOf(e.Cgroup))
}

func (a *Analysis) onRelease(e *recording.Event) {
	if t := a.threads[e.Thread]; t != nil && t.state == recording.Runnable {
		a.unhold(t)
	}
}

// rename puts a thread into the pool of its name.
func (a *Analysis) rename(t *thread, tgid uint32, comm string) {
	a.endSpell(t)
	if tgid != 0 {
		t.tgid = tgid
	}
	t.comm = comm
	pool := a.pools.find(a.byTGID[t.tgid], a.o.PoolOf(t.tid, t.tgid, comm))
	if pool == t.pool {
		return
	}
	a.leavePool(t)
	switch {
	case t.state == recording.Running:
		c := a.cpus[t.cpu]
		a.countHolder(c)
		a.pools.all[t.pool].end(a.now)
		t.pool = pool
		a.pools.all[pool].begin(a.now)
		a.active(t)
	case t.state == recording.Runnable:
		held := t.heldBy
		a.unhold(t)
		a.addWaiters(t.cpu, t.pool, t.class, -1)
		t.pool = pool
		a.active(t)
		a.addWaiters(t.cpu, t.pool, t.class, 1)
		if held >= 0 {
			a.hold(t, held)
		}
	default:
		t.pool = pool
	}
}

// nameProcess notes a process's program if its first thread is not in the header.
func (a *Analysis) nameProcess(p recording.Process) {
	if len(a.byTGID) < maxThreads && p.Exe != "" {
		a.byTGID[p.TGID] = baseName(p.Exe)
	}
}
