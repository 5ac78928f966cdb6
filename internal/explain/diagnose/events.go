package diagnose

import (
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// Event counts the time up to an event, and takes what makes no change of threads and CPUs.
func (a *Analysis) Event(nowNS int64, e *recording.Event) {
	if e.AtNS < nowNS {
		a.outOfOrder++
	}
	a.advance(nowNS)
	switch e.Kind {
	case recording.Switch:
		a.switches++
		if e.NextThread == 0 && e.Thread != 0 && e.NextOwner != recording.Idle &&
			e.Flags&(recording.PrevRunnable|recording.Throttled) == recording.PrevRunnable {
			a.preempted++
		}
	case recording.Period:
		a.limits.Add(e)
		a.onPeriod(e)
	case recording.Define:
		a.owners.define(e)
	case recording.Lost:
		a.lost += e.Count
	}
}

// Changed takes a change of a thread or a CPU.
func (a *Analysis) Changed(c *schedule.Change) {
	switch c.Kind {
	case schedule.Contradicted:
		a.contradictions++
		return
	case schedule.Unknown:
		a.unknownThreads++
		return
	case schedule.Took:
		a.setHolder(c.CPU, c.Holder)
		return
	case schedule.Began:
		a.begin(c.Thread)
		return
	case schedule.Received, schedule.Over:
		return
	case schedule.Sent:
		a.sent(c)
		return
	}
	t := a.threads[c.Thread.Index]
	switch c.Kind {
	case schedule.Named:
		a.rename(t, c.Event == nil)
	case schedule.Woke:
		a.countWakeup(t, c)
		t.woken, t.ran, t.cpuRun, t.wide = a.now, false, 0, 0
		a.move(t, c.Was)
	case schedule.Did:
		a.countEarly(t, c)
		a.move(t, c.Was)
		if t.State == schedule.Sleeping {
			a.endRun(t)
		}
	case schedule.Moved:
		if t.Waits() {
			a.addWaiters(c.Was.CPU, t, -1)
			a.addWaiters(t.CPU, t, 1)
		}
	case schedule.Ended:
		a.leavePool(t)
		a.pools.all[t.pool].has(-1)
		a.threads[t.Index] = nil
	}
}

// countEarly counts the time from a wake-up up to the switch to that thread, of which the kernel charges a part.
func (a *Analysis) countEarly(t *thread, c *schedule.Change) {
	e := c.Event
	if e == nil || t.State != schedule.Running || c.Was.State == schedule.Sleeping || t.woken < 0 || t.ran {
		return
	}
	if early := a.now - t.woken; e.Thread == 0 && e.Owner == recording.Idle || early <= preemptsWithin {
		a.chargedEarly += early
	}
}

// countWakeup notes what woke a thread: one of the container, a timer, or something outside of it. The start of a
// thread is no wake-up.
func (a *Analysis) countWakeup(t *thread, c *schedule.Change) {
	e := c.Event
	if e.Flags&recording.New != 0 {
		return
	}
	pool := -1
	if c.Waker != nil {
		pool = a.threads[c.Waker.Index].pool
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

// rename puts a thread into the pool of its name.
func (a *Analysis) rename(t *thread, first bool) {
	if first {
		t.class = a.classOf(t.Allowed)
	}
	pool := a.pools.find(t.Process, a.o.PoolOf(t.TID, t.TGID, t.Comm))
	if pool != t.pool {
		if t.State == schedule.Running {
			a.countHolder(a.cpus[t.CPU])
		}
		a.leavePool(t)
		a.leave(t, t.Doing)
		a.pools.all[t.pool].has(-1)
		a.pools.all[pool].has(1)
		t.pool = pool
		a.enter(t)
	}
	if first {
		p := a.pools.all[t.pool]
		p.realtime, p.ordinary = p.realtime || t.Realtime != "", p.ordinary || t.Realtime == ""
	}
}
