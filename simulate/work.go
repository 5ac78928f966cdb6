package simulate

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

// endless is the work of a thread that never stops.
const endless = time.Duration(math.MaxInt64 / 4)

// thread is one thread of a workload.
type thread struct {
	work, group, cpu int
	allowed          mask
	entity           entity
	left             time.Duration // CPU time until it stops by itself
	begin            time.Duration // of what is measured
	busy             bool          // something measured has begun
	queued           bool          // can run
	held             bool          // a quota holds it
	fresh            bool          // was never placed
}

// work is a workload's state.
type work struct {
	*scenario.Workload
	pool    scenario.Pool  // of a service
	class   scenario.Class // of its requests
	group   int
	first   int // of its threads
	used    time.Duration
	latency histogram
	started bool
	on      bool // neighbour

	next    int             // arrival in At
	resting []int           // threads of a service without work, the last to rest first
	waiting []time.Duration // a ring of intended arrivals
	head, n int
	refused uint64
}

func (h *host) addWorks(threads int) {
	h.threads = make([]thread, 0, threads)
	h.works = make([]work, len(h.scenario.Workloads))
	for i := range h.works {
		spec := &h.scenario.Workloads[i]
		w := &h.works[i]
		*w = work{Workload: spec, group: spec.Cgroup + 1, first: len(h.threads), latency: newHistogram()}
		if spec.Kind == scenario.Service {
			w.pool, w.class, _ = spec.Server.Simple() // checked by unmodelled
			w.resting = make([]int, 0, w.pool.Threads)
			w.waiting = make([]time.Duration, w.pool.Queue)
		}
		allowed := h.groups[w.group].allowed
		var each []int
		for c := range h.ncpu {
			if allowed.has(c) {
				each = append(each, c)
			}
		}
		for n := range spec.Threads {
			t := thread{work: i, group: w.group, allowed: allowed, fresh: true}
			if spec.Kind == scenario.Fib {
				t.allowed = newMask(h.ncpu)
				t.allowed.add(each[n%len(each)])
			}
			h.threads = append(h.threads, t)
		}
		h.queue.set(h.slots.work+i, spec.Start)
	}
}

// draw takes a time from a distribution, at least 1 ns.
func (h *host) draw(d scenario.Duration) time.Duration {
	switch d.Shape {
	case scenario.Exponential:
		return max(1, time.Duration(h.rng.ExpFloat64()*float64(d.Mean)))
	case scenario.Uniform:
		return d.Low + time.Duration(h.rng.Int64N(int64(d.High-d.Low)+1))
	}
	return d.Mean
}

// sleep lets a thread wake up after d, and up to the timer slack later.
func (h *host) sleep(t int, d time.Duration) {
	if slack := h.scenario.Host.TimerSlack; slack > 0 {
		d += time.Duration(h.rng.Int64N(int64(slack) + 1))
	}
	h.queue.set(h.slots.wake+t, h.now+d)
}

// onWork is a workload's own event: its start, an arrival, a change of mood.
func (h *host) onWork(i int) {
	w := &h.works[i]
	switch {
	case !w.started:
		w.started = true
		h.start(i)
	case w.Kind == scenario.Service:
		h.arrive(i)
	case w.Kind == scenario.Neighbour:
		h.toggle(i)
	}
}

func (h *host) start(i int) {
	w := &h.works[i]
	for n := range w.Threads {
		t := w.first + n
		th := &h.threads[t]
		switch {
		case w.Kind == scenario.Service:
			w.resting = append(w.resting, t)
		case w.Kind == scenario.Burn, w.Kind == scenario.Fib && n < w.Fast, w.Kind == scenario.Neighbour && w.On == 0:
			th.left = endless
			h.wake(t)
		case w.Kind == scenario.Sleeper:
			th.busy, th.begin = true, h.now
			h.sleep(t, h.draw(w.Sleep))
		case w.Kind != scenario.Neighbour:
			// Threads of a pool don't start in step.
			h.sleep(t, time.Duration(h.rng.Int64N(int64(w.Sleep.Average()))))
		}
	}
	switch {
	case w.Kind == scenario.Service:
		h.expect(i)
	case w.Kind == scenario.Neighbour && w.On > 0:
		h.toggle(i)
	}
}

func (h *host) toggle(i int) {
	w := &h.works[i]
	w.on = !w.on
	for n := range w.Threads {
		if w.on {
			h.threads[w.first+n].left = endless
			h.wake(w.first + n)
		} else {
			h.block(w.first + n)
		}
	}
	next := w.Off
	if w.on {
		next = w.On
	}
	h.queue.set(h.slots.work+i, h.now+next)
}

// expect makes the next arrival due.
func (h *host) expect(i int) {
	w := &h.works[i]
	switch {
	case w.class.Arrivals.PerSecond > 0:
		gap := time.Duration(h.rng.ExpFloat64() / w.class.Arrivals.PerSecond * float64(time.Second))
		h.queue.set(h.slots.work+i, h.now+min(gap, scenario.MaxDuration))
	case w.next < len(w.class.Arrivals.At):
		h.queue.set(h.slots.work+i, w.Start+w.class.Arrivals.At[w.next])
		w.next++
	}
}

// arrive brings a request to a thread, to the queue, or away.
func (h *host) arrive(i int) {
	w := &h.works[i]
	switch n := len(w.resting); {
	case n > 0:
		t := w.resting[n-1]
		w.resting = w.resting[:n-1]
		h.serve(t, h.now)
		h.wake(t)
	case w.n < len(w.waiting):
		w.waiting[(w.head+w.n)%len(w.waiting)] = h.now
		w.n++
	default:
		w.refused++
	}
	h.expect(i)
}

func (h *host) serve(t int, arrived time.Duration) {
	th := &h.threads[t]
	th.busy, th.begin = true, arrived
	th.left = h.draw(h.works[th.work].class.Work)
}

// onWake ends a thread's sleep.
func (h *host) onWake(t int) {
	th := &h.threads[t]
	w := &h.works[th.work]
	th.left = h.draw(w.Run)
	if w.Kind != scenario.Sleeper {
		th.busy, th.begin = true, h.now
	}
	h.wake(t)
}

// onDone is the end of what the running thread had to do.
func (h *host) onDone(c int) {
	t := h.cpus[c].cur
	th := &h.threads[t]
	w := &h.works[th.work]
	w.latency.add(h.now - th.begin)
	if h.times != nil {
		h.times(w.Name, h.now-th.begin)
	}
	th.busy = false
	if w.n > 0 {
		empty := h.update(c, true)
		h.serve(t, w.waiting[w.head])
		w.head = (w.head + 1) % len(w.waiting)
		w.n--
		if empty {
			h.schedule(c, th.group)
		} else {
			h.arm(c)
		}
		return
	}
	h.block(t)
	if w.Kind == scenario.Service {
		w.resting = append(w.resting, t)
		return
	}
	if w.Kind == scenario.Sleeper {
		th.busy, th.begin = true, h.now
	}
	h.sleep(t, h.draw(w.Sleep))
}
