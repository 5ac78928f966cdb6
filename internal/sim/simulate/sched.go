package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// update charges the running thread, its groups and their quotas for the time since the last update. runnable
// says that the thread can go on. It returns true if a quota is used up.
func (h *host) update(c int, runnable bool) bool {
	cur := &h.cpus[c]
	d := h.now - cur.last
	cur.last = h.now
	if cur.cur < 0 {
		return false
	}
	t := &h.threads[cur.cur]
	if h.speeds == nil {
		t.left -= d
	} else {
		h.progress(c)
	}
	h.works[t.work].used += d
	t.entity.vruntime += int64(d)
	empty := false
	for g := t.group; g > 0; g = h.groups[g].parent {
		h.rq(g, c).entity.vruntime += virtual(d, h.weight(^g, c))
		if bw := h.groups[g].bw; bw != nil {
			empty = bw.Charge(h.now, c, d, runnable) || empty
			h.timers(g)
		}
	}
	return empty
}

// timers makes a group's timers due after a call changed them.
func (h *host) timers(g int) {
	bw := h.groups[g].bw
	if at := bw.PeriodAt(); at == never || !h.queue.due(h.slots.period+g) {
		h.queue.set(h.slots.period+g, at)
	}
	if at := bw.SlackAt(); at != never || h.queue.due(h.slots.slack+g) {
		h.queue.set(h.slots.slack+g, at)
	}
}

// switchTo makes a thread the running one of a CPU; -1: idle.
func (h *host) switchTo(c, t int) {
	cur := &h.cpus[c]
	if cur.cur == t {
		return
	}
	before := cur.cur >= 0
	if before {
		h.occupy(h.threads[cur.cur].group, -1)
	} else {
		h.idle.drop(c)
	}
	if t >= 0 {
		if h.replay != nil {
			h.replayBegan(t)
		}
		h.occupy(h.threads[t].group, 1)
	} else {
		h.idle.add(c)
	}
	cur.cur, cur.last, cur.picked = t, h.now, h.now
	h.mark(c, t)
	if h.speeds != nil {
		h.threadChanged(c, before)
	}
}

// schedule lets used-up quotas throttle the CPU, from the group of the thread that ran last (from) upwards,
// and picks the next thread.
func (h *host) schedule(c, from int) {
	// From 6.18 on the thread is still there when the kernel checks a level above its group. The kernel parks
	// it afterwards, and all throttled levels count from then on.
	parks := h.scenario.Host.Rules.Has(bandwidth.Since6_18) && len(h.rq(from, c).list) > 0
	for g := from; g > 0; g = h.groups[g].parent {
		bw := h.groups[g].bw
		if bw == nil {
			continue
		}
		queued := parks || len(h.rq(g, c).list) > 0
		// Charged continuously, work that ends as the quota does is complete.
		if h.tick == 0 && !queued {
			continue
		}
		if bw.Check(h.now, c, queued) && h.rq(g, c).queued {
			h.runThrough(g, c)
		}
		if bw.Throttled(c) && h.rq(g, c).queued {
			if h.reachable(g, c) {
				h.holdAll(g, c, true)
			}
			h.unlink(g, c, (*host).leave)
		}
		h.timers(g)
	}
	next := h.pick(c)
	if next < 0 {
		h.switchTo(c, -1)
		if next = h.steal(c, 1); next < 0 {
			h.goIdle(c)
			return
		}
	}
	h.switchTo(c, next)
	h.arm(c)
}

func (h *host) goIdle(c int) {
	h.queue.clear(h.slots.done + c)
	h.queue.clear(h.slots.account + c)
	h.queue.clear(h.slots.tick + c)
}

// expectDone makes the end of the running thread's work due.
func (h *host) expectDone(c int) {
	if h.threads[h.cpus[c].cur].left < endless {
		h.queue.set(h.slots.done+c, h.now+h.remains(c))
	} else {
		h.queue.clear(h.slots.done + c)
	}
}

// arm makes the running thread's next events due.
func (h *host) arm(c int) {
	t := &h.threads[h.cpus[c].cur]
	h.expectDone(c)
	if h.tick > 0 {
		if !h.queue.due(h.slots.tick + c) {
			at := h.cpus[c].phase // within a tick
			if h.now >= at {
				at += ((h.now-at)/h.tick + 1) * h.tick
			}
			h.queue.set(h.slots.tick+c, at)
		}
		return
	}
	// Continuous: at the end of the smallest silo, or of a slice.
	next := h.slice
	for g := t.group; g > 0; g = h.groups[g].parent {
		if bw := h.groups[g].bw; bw != nil && !bw.Throttled(c) {
			next = min(next, bw.Left(c))
		}
	}
	h.queue.set(h.slots.account+c, h.now+max(0, next))
}

// onTick charges, ends slices, and spreads threads over CPUs.
func (h *host) onTick(c int) {
	if h.bounded {
		if h.shrink(c); h.cpus[c].cur < 0 {
			return
		}
	}
	empty := h.update(c, true)
	group := h.threads[h.cpus[c].cur].group
	if h.over(c) || empty {
		h.schedule(c, group)
	} else {
		h.arm(c)
	}
	h.spread(c)
	if h.speeds != nil {
		h.spreadCores(c)
	}
}

// wake puts a thread onto a CPU, where it may preempt. costs says that the thread pays for the wake-up.
func (h *host) wake(t int, costs bool) {
	th := &h.threads[t]
	th.cpu = h.choose(t)
	c := th.cpu
	if costs {
		th.left += h.wakeCost(c)
	}
	*h.lastWake(c) = h.now
	empty := h.update(c, true)
	h.enqueue(t)
	cur := h.cpus[c].cur
	switch {
	case cur < 0:
		h.schedule(c, th.group)
	case empty || !th.held && h.preempts(t, c):
		h.schedule(c, h.threads[cur].group)
	}
}

// A wake-up is more expensive the longer ago the last one was on the CPUs that share a cache, until
// longAfter. wake_cost_short holds shortAfter that one (both measured: Linux 6.18 at 250 Hz in a virtual
// machine with 2 CPUs, sleeps of 0.3 to 32 ms).
const (
	shortAfter = 2500 * time.Microsecond
	longAfter  = 6 * time.Millisecond
)

// lastWake is the time of the last wake-up on a CPU that shares a cache with c.
func (h *host) lastWake(c int) *time.Duration {
	if h.speeds == nil {
		return &h.woke[0]
	}
	return &h.woke[c/h.speeds.perCache]
}

// wakeCost is the CPU time of a wake-up on a CPU now.
func (h *host) wakeCost(c int) time.Duration {
	costs, short := &h.scenario.Host.WakeCosts, h.scenario.Host.WakeCosts.Short
	if short == 0 {
		short = costs.Long
	}
	rise, since := float64(costs.Long-short), min(h.now-*h.lastWake(c), longAfter)
	if h.cpus[c].cur >= 0 {
		return costs.Busy + time.Duration(rise*float64(since)/float64(longAfter))
	}
	return max(0, short+time.Duration(rise*float64(since-shortAfter)/float64(longAfter-shortAfter)))
}

// block puts a thread to sleep, whatever it was doing.
func (h *host) block(t int) {
	th := &h.threads[t]
	if !th.queued {
		return
	}
	c := th.cpu
	if h.cpus[c].cur != t {
		empty := h.update(c, true)
		h.dequeue(t)
		if empty {
			h.schedule(c, h.threads[h.cpus[c].cur].group)
		}
		return
	}
	h.update(c, false)
	h.takeOut(t, (*host).leaveAsleep)
	h.schedule(c, th.group)
}

// goOn gives a runnable thread more work, without a sleep.
func (h *host) goOn(t int, left time.Duration) {
	th := &h.threads[t]
	c := th.cpu
	if h.cpus[c].cur != t {
		th.left = left
		return
	}
	empty := h.update(c, true)
	th.left = left
	if empty {
		h.schedule(c, th.group)
	} else {
		h.arm(c)
	}
}

// release lets a CPU's threads run again after a refill of their group.
func (h *host) release(g, c int) {
	empty := h.update(c, true)
	if !h.groups[g].bw.Unthrottle(h.now, c) {
		return
	}
	if len(h.rq(g, c).list) > 0 {
		h.climb(g, c)
		if h.reachable(g, c) {
			h.comeBackIn(g, c)
			h.holdAll(g, c, false)
		}
	}
	h.comeBack(g, c)
	// A busy CPU goes on until its next tick.
	if cur := h.cpus[c].cur; cur < 0 {
		h.schedule(c, 0)
	} else if empty {
		h.schedule(c, h.threads[cur].group)
	}
}

// onTimer handles a group's period or slack timer.
func (h *host) onTimer(g int, period bool) {
	bw := h.groups[g].bw
	if period {
		h.freed = bw.PeriodTimer(h.now, h.freed[:0])
		if h.gate != nil && h.gate.Cgroup+1 == g {
			h.gatePeriod(bw)
		}
	} else {
		h.freed = bw.SlackTimer(h.now, h.freed[:0])
	}
	h.timers(g)
	late := time.Duration(0)
	if h.scenario.Host.Rules.UnthrottlesByInterrupt() {
		late = h.scenario.Host.UnthrottleIPI
	}
	for _, c := range h.freed {
		at := h.now
		if c != bw.TimerCPU() {
			at += late
		}
		h.queue.set(h.slots.ipi+g*h.ncpu+c, at)
	}
}
