package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// reading is the CPU time in which an I/O thread reads a request and hands it on: a poll, a read and a
// wake-up, all of them system calls.
const reading = 5 * time.Microsecond

// maxInflation bounds how much a request's work can grow.
const maxInflation = 10

// stage of a request in a service's thread.
type stage uint8

const (
	idleStage stage = iota // no request
	reads                  // an I/O thread reads one
	works                  // on its own
	tries                  // will try to take the lock when it runs
	waits                  // for the lock, asleep
	locked                 // works under the lock
)

// item is one try of a request in the service. Its client may have given it up.
type item struct {
	work   time.Duration
	flight int32 // of the client
	number uint32
	try    uint8
	class  uint8
}

// worker is the state of a service's thread.
type worker struct {
	line   int // the line that it serves
	stage  stage
	item   item
	under  time.Duration // work under the lock, still to do
	left   time.Duration // of the stage, when it stopped for a collection
	halted bool          // is at a safepoint
	halts  bool          // will stop at its safepoint when it runs
}

// line is a bounded queue of requests before one or more threads.
type line struct {
	waiting ring[item]
	idle    ring[int] // idle workers, in the order in which they became idle
	bound   int
}

// service is a service's state.
type service struct {
	spec    *scenario.Server
	work    *work
	workers []worker
	lines   []line
	io      int   // index of the first line of the I/O threads, one each; len(lines): none are simulated
	pools   []int // the first line of each pool, and the end
	turns   []int // the next line of each pool; the last entry: of the I/O threads
	holder  int   // worker that has the lock; -1: none
	queue   ring[int]
	world   *collector // nil: no collector stops it
	served  int
	clients *clients // its own, or those of all shards
	admits  scenario.Admission

	// Tries of a shard.
	answered, refused, unfinished uint64
}

// readersOf is how many I/O threads are simulated. A service in the short form has none.
func readersOf(w *scenario.Workload) int {
	if w.Server == nil {
		return 0
	}
	if _, _, simple := w.Server.Simple(); simple {
		return 0
	}
	return w.Server.IO
}

func (h *host) addService(i int) {
	w := &h.works[i]
	s := &service{spec: w.Server, work: w, holder: -1, admits: w.Server.RateLimit.Admission(),
		workers: make([]worker, w.count), turns: make([]int, len(w.Server.Pools)+1)}
	n := 0
	for _, p := range w.Server.Pools {
		s.pools = append(s.pools, len(s.lines))
		lines := 1
		if p.PerThread {
			lines = p.Threads
		}
		for range lines {
			s.lines = append(s.lines, line{bound: p.Queue / lines})
		}
		for j := range p.Threads {
			s.workers[n].line = s.pools[len(s.pools)-1] + j%lines
			n++
		}
	}
	s.io = len(s.lines)
	s.pools = append(s.pools, s.io)
	readers := readersOf(w.Workload)
	for range readers {
		// Sockets hold what the I/O threads have not read: together as much as clients have outstanding, with
		// tries that they gave up.
		s.workers[n].line = len(s.lines)
		s.lines = append(s.lines, line{bound: max(1, maxFlights/readers)})
		n++
	}
	w.service = s
	h.addClients(i)
}

// open starts a service: its threads wait for requests.
func (h *host) open(w *work) {
	s := w.service
	for n := range s.workers {
		s.lines[s.workers[n].line].idle.push(n)
	}
	if w.Shard == 0 {
		h.expectAll(s.clients)
	}
}

// arrive brings a try to the service: to an I/O thread, or straight to the pool.
func (h *host) arrive(s *service, it item) {
	if n := len(s.lines) - s.io; n > 0 {
		turn := &s.turns[len(s.turns)-1]
		*turn++
		h.offer(s, s.io+*turn%n, it)
		return
	}
	h.hand(s, it)
}

// hand gives a try to its class's pool, if the rate limit admits it.
func (h *host) hand(s *service, it item) {
	if !s.admits.Admits(h.now) {
		h.refuse(s, it)
		return
	}
	pool := s.spec.Classes[it.class].Pool
	first, end := s.pools[pool], s.pools[pool+1]
	s.turns[pool]++
	h.offer(s, first+s.turns[pool]%(end-first), it)
}

// offer gives a try to an idle thread or the queue, or refuses it.
func (h *host) offer(s *service, at int, it item) {
	l := &s.lines[at]
	switch {
	case l.idle.n > 0:
		n := l.idle.pop()
		left := h.take(s, n, it, 0)
		w := &s.workers[n]
		if s.world != nil && s.world.stopping {
			w.halted, w.left = true, left
			return
		}
		h.goAgain(s, n, left)
	case l.waiting.n < l.bound:
		l.waiting.push(it)
	default:
		h.refuse(s, it)
	}
}

// take gives a thread a try, with so many waiting behind it, and returns the CPU time of its first stage.
func (h *host) take(s *service, n int, it item, behind int) time.Duration {
	w := &s.workers[n]
	w.item = it
	if w.line >= s.io {
		w.stage = reads
		return reading
	}
	return h.serve(s, n, behind)
}

// serve begins a request's work: the shared data, its own, and that under the lock.
func (h *host) serve(s *service, n, behind int) time.Duration {
	w := &s.workers[n]
	class := &s.spec.Classes[w.item.class]
	d := float64(w.item.work) * min(maxInflation, 1+s.spec.Inflate*float64(behind))
	w.under = time.Duration(class.Locked * d)
	w.stage = works
	return time.Duration(d) - w.under + h.touching(s, class.Touches)
}

// touching is the CPU time to read and write so many cache lines of the shared data. Any of the w CPUs that
// serve now wrote a line last, so another CPU did with probability (w-1)/w.
func (h *host) touching(s *service, lines int) time.Duration {
	if lines == 0 {
		return 0
	}
	width := float64(max(1, h.inUse(s.work.group)))
	host := &h.scenario.Host
	each := float64(host.LineOwn) + float64(host.LineOther-host.LineOwn)*(width-1)/width
	return time.Duration(float64(lines) * each)
}

// inUse is how many CPUs a group uses now.
func (h *host) inUse(g int) int {
	if g > 0 {
		return h.groups[g].running
	}
	n := 0
	for c := range h.cpus {
		if h.cpus[c].cur >= 0 {
			n++
		}
	}
	return n
}

// onServed handles the end of a stage of a service's thread.
func (h *host) onServed(wk *work, t int) {
	s := wk.service
	n := t - wk.first
	w := &s.workers[n]
	if w.halts {
		w.halts = false
		h.halt(s, n)
		return
	}
	switch w.stage {
	case reads:
		if s.spec.Classes[w.item.class].Pool < 0 {
			if !s.admits.Admits(h.now) {
				h.refuse(s, w.item)
				h.next(s, n)
				return
			}
			h.goOn(t, h.serve(s, n, 0))
			return
		}
		// Still running, it wakes the pool's thread.
		h.update(h.threads[t].cpu, true)
		h.hand(s, w.item)
		h.next(s, n)
	case works, tries:
		switch {
		case w.under == 0:
			h.answer(s, n)
		case s.holder < 0:
			s.holder, w.stage = n, locked
			h.goOn(t, w.under)
		default:
			w.stage = waits
			s.queue.push(n)
			h.block(t)
		}
	case locked:
		s.holder = -1
		if s.queue.n > 0 {
			// It tries when it runs: others may be faster.
			h.update(h.threads[t].cpu, true)
			next := s.queue.pop()
			s.workers[next].stage = tries
			h.goAgain(s, next, 0)
		}
		h.answer(s, n)
	}
}

// goAgain wakes a thread with that much work.
func (h *host) goAgain(s *service, n int, left time.Duration) {
	t := s.work.first + n
	h.threads[t].left = left
	h.wake(t, false)
}

// answer ends a request.
func (h *host) answer(s *service, n int) {
	w := &s.workers[n]
	h.answered(s, w.item)
	h.next(s, n)
	if s.served++; s.world != nil && s.world.spec.Requests > 0 && s.served%s.world.spec.Requests == 0 {
		h.beginCollection(s.world)
	}
}

// next gives a thread its next request, or makes it idle.
func (h *host) next(s *service, n int) {
	w := &s.workers[n]
	l := &s.lines[w.line]
	t := s.work.first + n
	if l.waiting.n > 0 {
		it := l.waiting.pop()
		left := h.take(s, n, it, l.waiting.n)
		h.goOn(t, left)
		return
	}
	w.stage = idleStage
	h.block(t)
	l.idle.push(n)
}
