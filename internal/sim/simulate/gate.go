package simulate

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	budgetpace "github.com/unthrottle/unthrottle/libs/go/pace"
)

// A Gate holds work of a replay back as the project's library does in a program (libs/go/budget): work of a class takes one of
// its permits, and starts only while what is left of the period's quota covers it, by [budgetpace.Decide]. What the
// library learns of the slack is
// not replayed: it stays at the slice that it begins with.

// Gate says which work is held back. A work is what a thread does from one sleep to the next. Its permit is free while it sleeps,
// as in the library's Wait. Work that ran when the recording began, or that it cut off, is not held back.
type Gate struct {
	// Cgroup is the index of the cgroup whose quota counts, Workloads are the indices of those whose work is held back.
	Cgroup    int
	Workloads []int
	// Permits are how many works run at once; 0: as many as come.
	Permits int
	// Paced says that work starts only where the quota covers it.
	Paced bool
	// Least is the CPU time from which on a work is held back: shorter ones are of class IO.
	Least time.Duration
}

// gateReserve is the part of the quota that libs/go/budget leaves for other work, gateAskEvery the least time until the gate asks again.
const (
	gateReserve  = 0.1
	gateAskEvery = time.Microsecond
)

func (g *Gate) check(cgroups, workloads int) error {
	if g == nil {
		return nil
	}
	if g.Cgroup < 0 || g.Cgroup >= cgroups || g.Permits < 0 || g.Least < 0 {
		return fmt.Errorf("replay: gate %+v", *g)
	}
	for _, w := range g.Workloads {
		if w < 0 || w >= workloads {
			return fmt.Errorf("replay: gate of workload %d of %d", w, workloads)
		}
	}
	return nil
}

// gate is the state of a Gate.
type gate struct {
	*Gate
	of      []bool // workloads that are held back
	charged []int  // workloads of its cgroup
	holds   []bool // threads with a permit
	since   []time.Duration
	running int
	queue   ring[int] // threads that wait for one
	cost    budgetpace.Mean
	begin   time.Duration // of the period; base is what was used then
	base    time.Duration
}

func (h *host) addGate(of *Gate) {
	if of == nil || of.Permits == 0 && !of.Paced {
		return
	}
	g := &gate{Gate: of, of: make([]bool, len(h.works)), holds: make([]bool, len(h.threads)),
		since: make([]time.Duration, len(h.threads)), begin: never}
	for _, w := range of.Workloads {
		g.of[w] = true
	}
	for i := range h.works {
		for at := h.works[i].group; at > 0; at = h.groups[at].parent {
			if at == of.Cgroup+1 {
				g.charged = append(g.charged, i)
			}
		}
	}
	h.gate = g
}

// mustWait returns the CPU time of the work that a thread is about to begin, if it has to wait, and then queues the thread; 0: it
// begins.
func (h *host) mustWait(t int) time.Duration {
	g := h.gate
	if g == nil || !g.of[h.threads[t].work] || g.holds[t] || h.replay.threads[t].came == never {
		return 0
	}
	r := &h.replay.threads[t]
	steps := h.replay.scripts[r.script].steps[r.at:]
	d := demand(steps)
	if d < max(1, g.Least) || d >= endless/2 || !endsAfter(steps) {
		return 0
	}
	if g.queue.n == 0 && h.mayStart() {
		g.grant(t, h.now)
		return 0
	}
	g.queue.push(t)
	return d
}

func (g *gate) grant(t int, now time.Duration) {
	g.holds[t], g.since[t] = true, now
	g.running++
}

// letGo takes the permit of a thread that is through.
func (h *host) letGo(t int) {
	g := h.gate
	if g == nil || !g.holds[t] {
		return
	}
	g.holds[t] = false
	g.running--
	g.cost.Add(h.now - g.since[t])
	if g.queue.n > 0 { // after this event: the thread still has its CPU
		h.queue.set(h.slots.gate, h.now)
	}
}

// openGate starts work that waits, as much as may.
func (h *host) openGate() {
	for g := h.gate; g.queue.n > 0 && h.mayStart(); {
		t := g.queue.pop()
		g.grant(t, h.now)
		h.replayResume(t)
	}
}

// gatePeriod begins a period of the quota.
func (h *host) gatePeriod(bw *bandwidth.Group) {
	g := h.gate
	if bw.PeriodAt() != never {
		g.begin, g.base = bw.PeriodAt()-bw.Limit().Period, h.usedOf(g.charged)
	}
	if g.queue.n > 0 {
		h.queue.set(h.slots.gate, h.now)
	}
}

// mayStart reports whether one more work may start now. If only the quota does not cover it, it arranges that the gate asks again.
func (h *host) mayStart() bool {
	g := h.gate
	if g.Permits > 0 && g.running >= g.Permits {
		return false
	}
	bw := h.groups[g.Cgroup+1].bw
	if !g.Paced || bw == nil || bw.PeriodAt() == never {
		return true
	}
	limit, used := bw.Limit(), h.usedOf(g.charged)
	if begin := bw.PeriodAt() - limit.Period; begin != g.begin {
		g.begin, g.base = begin, used
	}
	wait := holdBack(limit, h.now-g.begin, used-g.base, g.cost.High(), g.running)
	if wait == 0 {
		return true
	}
	h.queue.set(h.slots.gate, h.now+max(gateAskEvery, wait))
	return false
}

// usedOf is the CPU time that workloads have used until now.
func (h *host) usedOf(works []int) (used time.Duration) {
	for _, w := range works {
		used += h.works[w].used
	}
	for c := range h.cpus {
		cur := &h.cpus[c]
		if cur.cur < 0 {
			continue
		}
		for _, w := range works {
			if h.threads[cur.cur].work == w {
				used += h.now - cur.last
			}
		}
	}
	return used
}

// holdBack is for how long a work must wait so that the quota covers it, the works that run, and the reserve; 0: not at all. elapsed
// and used are of the current period.
func holdBack(limit bandwidth.Limit, elapsed, used, cost time.Duration, running int) time.Duration {
	if !limit.Limited() {
		return 0
	}
	var slack budgetpace.Slack
	slack.Restart(limit.Quota)
	_, wait := budgetpace.Decide(budgetpace.Period{Quota: limit.Quota, Length: limit.Period, Elapsed: elapsed, Used: used},
		budgetpace.Work{Cost: cost, Running: running, Reserve: time.Duration(gateReserve * float64(limit.Quota)), Slack: slack.Kept()})
	return wait
}
