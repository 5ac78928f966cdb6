package simulate

import "time"

// update charges the running thread, its groups and their quotas for the time
// since the last update. runnable: it can run on. True: a quota is used up.
func (h *host) update(c int, runnable bool) bool {
	cur := &h.cpus[c]
	d := h.now - cur.last
	cur.last = h.now
	if cur.cur < 0 {
		return false
	}
	t := &h.threads[cur.cur]
	t.left -= d
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

// timers follows a group's timers after it was told something.
func (h *host) timers(g int) {
	bw := h.groups[g].bw
	if at := bw.PeriodAt(); at == never || !h.queue.due(h.slots.period+g) {
		h.queue.set(h.slots.period+g, at)
	}
	if at := bw.SlackAt(); at != never || h.queue.due(h.slots.slack+g) {
		h.queue.set(h.slots.slack+g, at)
	}
}

// count adds threads that can run to a group on a CPU, and to those above it
// as far as it is linked.
func (h *host) count(g, c, n int) {
	for {
		q := h.rq(g, c)
		if g == 0 {
			before := q.threads
			q.threads += n
			h.crowd(before, q.threads)
			return
		}
		q.threads += n
		h.groups[g].threads += n
		if !q.queued {
			return
		}
		g = h.groups[g].parent
	}
}

func (h *host) crowd(before, after int) {
	if before < 2 && after >= 2 {
		h.crowded++
	} else if before >= 2 && after < 2 {
		h.crowded--
	}
}

// reachable says whether no quota holds a group's threads on a CPU.
func (h *host) reachable(g, c int) bool {
	for ; g > 0; g = h.groups[g].parent {
		if !h.rq(g, c).queued {
			return false
		}
	}
	return true
}

// climb links a group that has got something to run into its parent, and so on
// up, until a quota stops it.
func (h *host) climb(g, c int) {
	for g > 0 {
		q := h.rq(g, c)
		if q.queued {
			return
		}
		if bw := h.groups[g].bw; bw != nil {
			stop := bw.Enqueue(h.now, c)
			h.timers(g)
			if stop {
				return
			}
		}
		p := h.groups[g].parent
		up := h.rq(p, c)
		first := len(up.list) == 0
		q.queued = true
		h.place(up, ^g, c)
		h.count(p, c, q.threads)
		if !first {
			return
		}
		g = p
	}
}

// unlink takes a group that has nothing more to run, or may not, out of its
// parent, and each parent that is empty then.
func (h *host) unlink(g, c int) {
	for g > 0 && h.rq(g, c).queued {
		q := h.rq(g, c)
		p := h.groups[g].parent
		h.leave(h.rq(p, c), ^g, c)
		q.queued = false
		h.count(p, c, -q.threads)
		if len(h.rq(p, c).list) > 0 {
			return
		}
		h.emptied(p, c)
		g = p
	}
}

func (h *host) emptied(g, c int) {
	if bw := h.groups[g].bw; bw != nil {
		bw.Dequeue(h.now, c)
		h.timers(g)
	}
}

// enqueue makes a thread runnable on its CPU.
func (h *host) enqueue(t int) {
	th := &h.threads[t]
	c := th.cpu
	q := h.rq(th.group, c)
	first := len(q.list) == 0
	th.queued = true
	h.cpus[c].threads++
	h.place(q, t, c)
	h.count(th.group, c, 1)
	if first {
		h.climb(th.group, c)
	}
	if !h.reachable(th.group, c) {
		h.hold(t, true)
	}
}

// dequeue takes a thread out of its CPU's run queues.
func (h *host) dequeue(t int) {
	th := &h.threads[t]
	c := th.cpu
	q := h.rq(th.group, c)
	h.leave(q, t, c)
	th.queued = false
	h.cpus[c].threads--
	h.count(th.group, c, -1)
	if th.held {
		h.hold(t, false)
	}
	if len(q.list) == 0 {
		h.emptied(th.group, c)
		h.unlink(th.group, c)
	}
}

// switchTo makes a thread the running one of a CPU; -1: idle.
func (h *host) switchTo(c, t int) {
	cur := &h.cpus[c]
	if cur.cur == t {
		return
	}
	if cur.cur >= 0 {
		h.occupy(h.threads[cur.cur].group, -1)
	} else {
		h.idle.drop(c)
	}
	if t >= 0 {
		h.occupy(h.threads[t].group, 1)
	} else {
		h.idle.add(c)
	}
	cur.cur, cur.last, cur.picked = t, h.now, h.now
}

// schedule lets quotas that are used up throttle the CPU, from the running
// thread's group (from: that of the thread that ran last) up, and chooses who
// runs.
func (h *host) schedule(c, from int) {
	for g := from; g > 0; g = h.groups[g].parent {
		bw := h.groups[g].bw
		if bw == nil {
			continue
		}
		queued := len(h.rq(g, c).list) > 0
		// Charged continuously, work that ends as the quota does has made it.
		if h.tick == 0 && !queued {
			continue
		}
		if bw.Check(h.now, c, queued) && h.rq(g, c).queued {
			if h.reachable(g, c) {
				h.holdAll(g, c, true)
			}
			h.unlink(g, c)
		}
		h.timers(g)
	}
	next := h.pick(c)
	if next < 0 {
		h.switchTo(c, -1)
		if next = h.steal(c, 1); next < 0 {
			h.rest(c)
			return
		}
	}
	h.switchTo(c, next)
	h.arm(c)
}

func (h *host) rest(c int) {
	h.queue.clear(h.slots.done + c)
	h.queue.clear(h.slots.account + c)
	h.queue.clear(h.slots.tick + c)
}

// arm makes due what the running thread leads to.
func (h *host) arm(c int) {
	t := &h.threads[h.cpus[c].cur]
	if t.left < endless {
		h.queue.set(h.slots.done+c, h.now+t.left)
	} else {
		h.queue.clear(h.slots.done + c)
	}
	if h.tick > 0 {
		if !h.queue.due(h.slots.tick + c) {
			phase := h.cpus[c].phase
			h.queue.set(h.slots.tick+c, phase+((h.now-phase)/h.tick+1)*h.tick)
		}
		return
	}
	// Continuous: at the end of the smallest silo, or of a turn.
	next := h.slice
	for g := t.group; g > 0; g = h.groups[g].parent {
		if bw := h.groups[g].bw; bw != nil {
			next = min(next, bw.Left(c))
		}
	}
	h.queue.set(h.slots.account+c, h.now+max(0, next))
}

// onTick charges, ends turns, and spreads threads over CPUs.
func (h *host) onTick(c int) {
	empty := h.update(c, true)
	group := h.threads[h.cpus[c].cur].group
	if h.over(c) || empty {
		h.schedule(c, group)
	} else {
		h.arm(c)
	}
	h.spread(c)
}

// wake puts a thread onto a CPU and lets it preempt.
func (h *host) wake(t int) {
	th := &h.threads[t]
	th.cpu = h.choose(t)
	c := th.cpu
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
	h.dequeue(t)
	h.schedule(c, th.group)
}

// release lets a CPU's threads run again after their group was refilled.
func (h *host) release(g, c int) {
	empty := h.update(c, true)
	if !h.groups[g].bw.Unthrottle(h.now, c) {
		return
	}
	if len(h.rq(g, c).list) > 0 {
		h.climb(g, c)
		if h.reachable(g, c) {
			h.holdAll(g, c, false)
		}
	}
	// A busy CPU goes on until its next tick.
	if cur := h.cpus[c].cur; cur < 0 {
		h.schedule(c, 0)
	} else if empty {
		h.schedule(c, h.threads[cur].group)
	}
}

// onTimer is a group's period or slack timer.
func (h *host) onTimer(g int, period bool) {
	bw := h.groups[g].bw
	if period {
		h.freed = bw.PeriodTimer(h.now, h.freed[:0])
	} else {
		h.freed = bw.SlackTimer(h.now, h.freed[:0])
	}
	h.timers(g)
	late := time.Duration(0)
	if h.scenario.Host.Rules.Async() {
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
