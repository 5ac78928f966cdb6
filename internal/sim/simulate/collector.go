package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// part is the share of a collection that a thread takes at a time, as in real runs.
const part = 100 * time.Microsecond

// collector is a stop-the-world garbage collector. Its service's threads come to a safepoint, and all
// collecting threads work at once. A thread without work spins until all are done, as in parallel collectors.
type collector struct {
	spec     *scenario.Collector
	service  *service
	work     *work
	stopping bool // from the request to the end of a collection
	running  int  // threads of the service that are not at their safepoint yet
	began    time.Duration
	left     time.Duration // work that no thread has taken yet
	at       int           // collecting threads that have not reached the end
}

func (h *host) addCollector(i int) {
	w := &h.works[i]
	s := h.works[w.Collector.Service].service
	w.collector = &collector{spec: w.Collector, service: s, work: w}
	s.world = w.collector
}

// beginCollection begins a collection. A request during a pending collection changes nothing.
func (h *host) beginCollection(c *collector) {
	if c.stopping {
		return
	}
	s := c.service
	c.stopping, c.began, c.running = true, h.now, 1
	for n := range s.workers {
		w := &s.workers[n]
		if w.stage == idleStage || w.stage == waits {
			continue // at a safepoint already, as threads that wait for a lock are in a JVM
		}
		c.running++
		t := s.work.first + n
		if th := &h.threads[t]; h.cpus[th.cpu].cur == t {
			h.halt(s, n)
		} else {
			// The thread must run to reach its safepoint.
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

// arrived counts a thread that reached its safepoint; after the last one the collection begins.
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

// onCollected gives a collecting thread its next part, or makes it spin.
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

// spin makes a collecting thread wait for the end of the others. It always yields (yield_task_fair), so
// threads with work come first.
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
