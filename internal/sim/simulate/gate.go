package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// A Gate holds work of a replay back as the project's library does in a program (libs/go/budget): work of a class takes one of
// its permits, and starts only while what is left of the period's quota covers it. It is a copy of that library's rule, since a
// program outside cannot import it; the two have the same worked example in their tests. What the library learns of the slack is not
// replayed: it stays at the slice that it begins with.
//
// Worked example: 70 of 100 ms, a tenth in reserve, one permit. After 50 ms 45 ms are used. A work of 30 ms needs 30, and 20 are
// left without the slack of 5: it waits. With r ms of the period left it needs r, and 0.07 r are reserved: 20 ms cover both
// at r = 18.7. So it starts in 31.3 ms.

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

// The figures of libs/go/budget: what is left for other work, and what CPUs may keep of the quota.
const (
	gateReserve  = 0.1
	gateSlice    = 5 * time.Millisecond // sched_cfs_bandwidth_slice_us
	gateAskEvery = time.Microsecond     // the least time until it asks again
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
	cost    gateMean
	begin   time.Duration // of the period; base is what was used then
	base    time.Duration
}

// gateMean is a running mean with its mean deviation (RFC 6298), as the library's.
type gateMean struct {
	value, deviation time.Duration
	any              bool
}

func (m *gateMean) add(v time.Duration) {
	if !m.any {
		*m = gateMean{v, v / 2, true}
		return
	}
	off := v - m.value
	m.value += off / 8
	m.deviation += (max(off, -off) - m.deviation) / 4
}

func (m *gateMean) high() time.Duration { return m.value + 2*m.deviation }

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
	g.cost.add(h.now - g.since[t])
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
	wait := holdBack(limit, h.now-g.begin, used-g.base, g.cost.high(), g.running)
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

// holdBack is for how long a work must wait so that the quota covers it, the works that run, and the reserve; 0: not at all. It is
// libs/go/internal/pace.Decide. elapsed and used are of the current period.
func holdBack(limit bandwidth.Limit, elapsed, used, cost time.Duration, running int) time.Duration {
	if !limit.Limited() || elapsed < 0 || elapsed >= limit.Period {
		return 0
	}
	rest := limit.Period - elapsed
	threads := float64(running + 1)
	fresh := float64(limit.Quota - min(gateSlice, limit.Quota/8))
	left := fresh - float64(used)
	reserve := gateReserve * float64(limit.Quota) / float64(limit.Period)
	start := rest
	if left < threads*float64(min(cost, rest))+reserve*float64(rest) {
		start = min(rest, time.Duration(math.Max(0, left)/(threads+reserve)))
	}
	over := func(from float64) bool { return threads*(float64(cost)-from) > fresh }
	if over(float64(start)) && !over(fresh/(threads+reserve)) {
		return rest
	}
	return rest - start
}
