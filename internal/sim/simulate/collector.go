package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/sim/scenario"
)

// part is how much of a collection a thread takes at a time, as in real runs.
const part = 100 * time.Microsecond

// collector is a stop-the-world garbage collector: its service's threads come to
// a safepoint, all collecting threads work at once, and who finds nothing to do
// spins until all are done, as parallel collectors do.
type collector struct {
	spec     *scenario.Collector
	service  *service
	work     *work
	stopping bool // asked for, up to its end
	running  int  // threads of the service that are not at their safepoint yet
	began    time.Duration
	left     time.Duration // of the work, not yet taken
	at       int           // collecting threads that have not found the end
}

func (h *host) addCollector(i int) {
	w := &h.works[i]
	s := h.works[w.Collector.Service].service
	w.collector = &collector{spec: w.Collector, service: s, work: w}
	s.world = w.collector
}

// collect begins a collection; one that is asked for while another is due is the
// same.
func (h *host) collect(c *collector) {
	if c.stopping {
		return
	}
	s := c.service
	c.stopping, c.began, c.running = true, h.now, 1
	for n := range s.workers {
		w := &s.workers[n]
		if w.stage == resting || w.stage == waits {
			continue // at a safepoint, as threads that wait for a lock are in a JVM
		}
		c.running++
		t := s.work.first + n
		if th := &h.threads[t]; h.cpus[th.cpu].cur == t {
			h.halt(s, n)
		} else {
			// It must run to get there.
			w.halts, w.left, th.left = true, th.left, 0
		}
	}
	h.arrived(c)
}

// halt stops a running thread at its safepoint.
func (h *host) halt(s *service, n int) {
	w := &s.workers[n]
	t := s.work.first + n
	h.block(t)
	w.halted = true
	w.left = max(w.left, h.threads[t].left)
	h.arrived(s.world)
}

// arrived is one less that runs; with the last one the collecting begins.
func (h *host) arrived(c *collector) {
	if c.running--; c.running > 0 {
		return
	}
	c.left, c.at = c.spec.Work, c.work.Threads
	for n := range c.work.Threads {
		h.threads[c.work.first+n].left = 0
		h.wake(c.work.first+n, false)
	}
}

// onCollected gives a collecting thread its next part, or lets it spin.
func (h *host) onCollected(c *collector, t int) {
	if c.left > 0 {
		d := min(part, c.left)
		c.left -= d
		h.goOn(t, d)
		return
	}
	if c.at--; c.at > 0 {
		h.spin(t)
		return
	}
	for n := range c.work.Threads {
		h.block(c.work.first + n)
	}
	h.measured(c.work, h.now-c.began)
	c.stopping = false
	for n := range c.service.workers {
		if w := &c.service.workers[n]; w.halted {
			w.halted = false
			left := w.left
			w.left = 0
			h.goAgain(c.service, n, left)
		}
	}
}

// spin lets a collecting thread wait for the others' end. It yields all the
// time (yield_task_fair), so that threads that have something to do come first.
func (h *host) spin(t int) {
	th := &h.threads[t]
	c := th.cpu
	h.update(c, true)
	th.left = endless
	th.entity.vruntime = max(th.entity.vruntime, th.entity.deadline)
	th.entity.deadline += int64(h.slice)
	if !h.eevdf {
		th.entity.vruntime += int64(h.latency)
	}
	h.schedule(c, th.group)
}
