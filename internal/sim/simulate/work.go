package simulate

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// endless is the work of a thread that never stops.
const endless = time.Duration(math.MaxInt64 / 4)

// thread is one thread of a workload.
type thread struct {
	work, group, cpu int
	in               int // the group of its run queue: its own, or the root
	allowed          mask
	entity           entity
	left             time.Duration // CPU time until it stops by itself
	begin            time.Duration // of the current measurement: the begin of a sleeper's sleep, or the due end of another thread's sleep
	busy             bool          // a measurement has begun
	queued           bool          // runnable
	held             bool          // a quota holds it
	late             time.Duration // when it woke up while a quota held it already; 0: it did not
	fresh            bool          // was never placed
	waking           bool          // its sleep is over, and its CPU about to wake up
	step             uint8         // of a thread of kind kernel
	node, cache      int           // of its memory, and where it last ran, if CPUs are unequal; node -1: it never ran
}

// work is a workload's state.
type work struct {
	*scenario.Workload
	group        int
	first, count int // of its threads
	used         time.Duration
	latency      histogram
	started      bool
	on           bool // of a neighbour

	service   *service
	collector *collector
}

// threadsOf is how many simulated threads a workload has, with a service's I/O threads.
func threadsOf(w *scenario.Workload) int { return w.Threads + readersOf(w) }

func (h *host) addWorks(threads, streams int) {
	h.threads = make([]thread, 0, threads)
	h.streams = make([]stream, 0, streams)
	h.works = make([]work, len(h.scenario.Workloads))
	for i := range h.works {
		spec := &h.scenario.Workloads[i]
		w := &h.works[i]
		*w = work{Workload: spec, group: spec.Cgroup + 1, first: len(h.threads), count: threadsOf(spec), latency: histogram{}}
		allowed := maskOf(h.scenario.CPUsOf(spec), h.ncpu)
		var each []int
		for c := range h.ncpu {
			if allowed.has(c) {
				each = append(each, c)
			}
		}
		for n := range w.count {
			t := thread{work: i, group: w.group, in: w.group, allowed: allowed, fresh: true, node: -1}
			if spec.Kind == scenario.Fib {
				t.allowed = newMask(h.ncpu)
				t.allowed.add(each[n%len(each)])
			}
			h.threads = append(h.threads, t)
		}
		if spec.Kind == scenario.Service {
			h.addService(i)
		}
		h.queue.set(h.slots.work+i, spec.Start)
	}
	for i := range h.works {
		if h.works[i].Kind == scenario.GC {
			h.addCollector(i)
		}
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

// sleep makes a thread wake up after d, divided by its workload's phase, and the timer slack later. The
// interrupt comes at the end of a timer's range (hrtimer_get_expires), unless another timer's interrupt comes
// within it.
func (h *host) sleep(t int, d time.Duration) {
	w := &h.works[h.threads[t].work]
	at, wakes := scenario.WakeAfter(w.Phases, h.now-w.Start, d)
	if !wakes {
		return
	}
	at += w.Start
	if w.Kind != scenario.Sleeper {
		h.threads[t].begin = at
	}
	h.queue.set(h.slots.wake+t, at+h.scenario.Host.TimerSlack)
}

// onWork handles a workload's own event: its start, a switch between on and off, a collection.
func (h *host) onWork(i int) {
	w := &h.works[i]
	switch {
	case !w.started:
		w.started = true
		starts[w.Kind](h, i)
	case w.Kind == scenario.Neighbour:
		h.toggle(i)
	case w.Kind == scenario.GC:
		h.queue.set(h.slots.work+i, h.now+w.Collector.Every)
		h.beginCollection(w.collector)
	case w.Kind == Replayed:
		h.replayArrived(i)
	}
}

// starts begins a workload of each kind. A kind that is not here is not simulated: [Unmodelled].
var starts = map[scenario.Kind]func(h *host, i int){
	scenario.Burn:      eachThread((*host).startAwake),
	scenario.SleepRun:  eachThread((*host).startAsleep),
	scenario.Kernel:    eachThread((*host).startAsleep),
	scenario.Fib:       eachThread((*host).startFib),
	scenario.Sleeper:   eachThread((*host).startSleeper),
	scenario.Neighbour: (*host).startNeighbour,
	scenario.Service:   func(h *host, i int) { h.open(&h.works[i]) },
	scenario.GC:        (*host).startGC,
	Replayed:           (*host).startReplay,
}

// eachThread begins a workload by its threads, in their order.
func eachThread(start func(h *host, t int)) func(h *host, i int) {
	return func(h *host, i int) {
		for n := range h.works[i].Threads {
			start(h, h.works[i].first+n)
		}
	}
}

// startAwake starts a thread that runs without an end.
func (h *host) startAwake(t int) {
	h.threads[t].left = endless
	h.wake(t, false)
}

// startAsleep starts a thread within its first sleep: threads of a pool do not start in step.
func (h *host) startAsleep(t int) {
	th := &h.threads[t]
	h.placeSleeper(th)
	h.sleep(t, time.Duration(h.rng.Int64N(int64(h.works[th.work].Sleep.Average()))))
}

// startFib starts a thread of fibtest: the first ones are fast.
func (h *host) startFib(t int) {
	if w := &h.works[h.threads[t].work]; t-w.first < w.Fast {
		h.startAwake(t)
	} else {
		h.startAsleep(t)
	}
}

// startSleeper starts a thread whose sleeps are measured.
func (h *host) startSleeper(t int) {
	th := &h.threads[t]
	h.placeSleeper(th)
	th.busy, th.begin = true, h.now
	h.sleep(t, h.draw(h.works[th.work].Sleep))
}

// startNeighbour starts a neighbour, which is on and off in turn or runs all the time.
func (h *host) startNeighbour(i int) {
	if h.works[i].On > 0 {
		h.toggle(i)
	} else {
		eachThread((*host).startAwake)(h, i)
	}
}

// startGC starts a collector; one without a time waits for its service's requests.
func (h *host) startGC(i int) {
	if every := h.works[i].Collector.Every; every > 0 {
		h.queue.set(h.slots.work+i, h.now+every)
	}
}

// clockLook is how long a neighbour runs between two reads of the clock, as in real runs.
const clockLook = 50 * time.Microsecond

func (h *host) toggle(i int) {
	w := &h.works[i]
	w.on = !w.on
	for n := range w.Threads {
		t := w.first + n
		switch th := &h.threads[t]; {
		case w.on && th.queued:
			h.goOn(t, endless)
		case w.on && th.fresh:
			th.left = endless
			h.wake(t, false)
		case w.on:
			h.queue.set(h.slots.wake+t, h.now+h.scenario.Host.TimerSlack)
		case h.cpus[th.cpu].cur == t:
			h.block(t)
		case th.queued:
			// It must run to see that its time is over.
			th.left = clockLook
		default:
			h.queue.clear(h.slots.wake + t) // not even awake yet
			th.waking = false
		}
	}
	next := w.Off
	if w.on {
		next = w.On
	}
	h.queue.set(h.slots.work+i, h.now+next)
}

// onWake ends a thread's sleep.
func (h *host) onWake(t int) {
	th := &h.threads[t]
	w := &h.works[th.work]
	if delay := h.scenario.Host.WakeCosts.Delay; delay > 0 && !th.waking && h.cpus[th.cpu].cur < 0 {
		th.waking = true
		h.queue.set(h.slots.wake+t, h.now+delay)
		return
	}
	th.waking = false
	costs := false
	switch w.Kind {
	case Replayed:
		h.replayWoken(t)
		return
	case scenario.Neighbour:
		th.left = endless
	case scenario.Kernel:
		th.step, th.left = stepEnter, 0
	default:
		th.left, costs = h.draw(w.Run), true
	}
	th.busy = w.Kind != scenario.Neighbour // the runs of a neighbour are not measured
	h.wake(t, costs)
}

// onDone handles the end of the running thread's work.
func (h *host) onDone(c int) {
	t := h.cpus[c].cur
	switch w := &h.works[h.threads[t].work]; w.Kind {
	case scenario.Service:
		h.onServed(w, t)
	case scenario.GC:
		h.onCollected(w.collector, t)
	case scenario.Kernel:
		h.onCall(t)
	case scenario.Neighbour:
		h.block(t)
	case Replayed:
		h.replayOn(t)
	default:
		h.finished(t)
	}
}

// finished ends the measurement of a thread, which goes to sleep.
func (h *host) finished(t int) {
	th := &h.threads[t]
	w := &h.works[th.work]
	h.measured(w, h.now-th.begin)
	th.busy = false
	h.block(t)
	if w.Kind == scenario.Sleeper {
		th.busy, th.begin = true, h.now
	}
	h.sleep(t, h.draw(w.Sleep))
}

// measured counts a time for a workload's quantiles.
func (h *host) measured(w *work, took time.Duration) {
	w.latency.add(took)
	if h.times != nil {
		h.times(w.Name, took)
	}
}
