package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

const (
	// maxFlights bounds the requests on their way; what comes on top is not sent,
	// and counted as unfinished.
	maxFlights = 100_000
	// maxEarned bounds the retries that a budget can save up.
	maxEarned = 100
	// none ends a list of flights.
	none int32 = -1
)

// flight is a request on its way, as its client sees it.
type flight struct {
	arrived  time.Duration
	work     time.Duration // the same for each try
	deadline time.Duration // of the try
	before   int32         // in the list of tries by deadline, or of free flights
	after    int32
	number   uint32 // of all the requests that were in this place
	tries    uint8
	class    uint8
	away     bool // a try is on its way; false: the next one waits
}

// retry is when a request is tried again.
type retry struct {
	at     time.Duration
	flight int32
}

// stream is the arrivals of one class.
type stream struct {
	service *service
	class   int
	pace    pace
	next    int // in At
}

// clients send a service its requests and keep the account.
type clients struct {
	flights     []flight
	free        int32
	first, last int32   // tries on their way, by deadline
	retries     []retry // a heap
	streams     int     // the first in host.streams
	earned      float64 // retries that the budget still has

	answered, failed, refused, unsent uint64
	live                              int
	classes                           []class // of several
	slots                             []slot  // nil: nobody recovers from anything
}

// class is the figures of one class of requests.
type class struct {
	answered uint64
	latency  histogram
}

func (h *host) addClients(i int) {
	w := &h.works[i]
	s := w.service
	c := &s.clients
	c.free, c.first, c.last, c.streams = none, none, none, len(h.streams)
	for n := range w.Server.Classes {
		h.streams = append(h.streams, stream{service: s, class: n, pace: newPace(w.Phases, w.Start)})
	}
	if len(w.Server.Classes) > 1 {
		c.classes = make([]class, len(w.Server.Classes))
		for n := range c.classes {
			c.classes[n].latency = newHistogram()
		}
	}
	if w.Server.Timeout > 0 && fall(w.Phases) != never {
		c.slots = make([]slot, (h.scenario.Duration-w.Start)/slotLength+1)
	}
}

// index of a service's workload.
func (h *host) index(s *service) int { return h.threads[s.work.first].work }

func (h *host) expectAll(s *service) {
	for n := range s.spec.Classes {
		h.expect(s.clients.streams + n)
	}
}

// expect makes a stream's next arrival due.
func (h *host) expect(at int) {
	st := &h.streams[at]
	a := &st.service.spec.Classes[st.class].Arrivals
	next := never
	switch {
	case a.PerSecond > 0:
		gap := float64(a.Burst) / a.PerSecond
		if !a.Regular {
			gap *= h.rng.ExpFloat64()
		}
		next = st.pace.spend(time.Duration(min(gap, scenario.MaxDuration.Seconds()) * float64(time.Second)))
	case st.next < len(a.At):
		next = st.service.work.Start + a.At[st.next]
		st.next++
	}
	h.queue.set(h.slots.arrive+at, next)
}

// onArrival is the moment of a stream's next requests.
func (h *host) onArrival(at int) {
	st := &h.streams[at]
	s := st.service
	class := &s.spec.Classes[st.class]
	for range class.Arrivals.Burst {
		h.request(s, st.class, h.draw(class.Work))
	}
	h.expect(at)
}

// request is a new request.
func (h *host) request(s *service, class int, work time.Duration) {
	c := &s.clients
	c.slot(h.now-s.work.Start).intended++
	c.earned = min(maxEarned, c.earned+s.spec.Retries.Budget)
	if c.live == maxFlights {
		c.unsent++
		return
	}
	c.live++
	if c.free == none {
		c.free = int32(len(c.flights))
		c.flights = append(c.flights, flight{after: none})
	}
	at := c.free
	f := &c.flights[at]
	c.free = f.after
	*f = flight{arrived: h.now, work: work, number: f.number + 1, class: uint8(class)}
	h.send(s, at)
}

// send makes a request's next try.
func (h *host) send(s *service, at int32) {
	f := &s.clients.flights[at]
	f.tries++
	f.away = true
	if s.spec.Timeout > 0 {
		h.watch(s, at)
	}
	h.arrive(s, item{work: f.work, flight: at, number: f.number, try: f.tries, class: f.class})
}

// watch puts a try at the end of the list by deadline: all have the same
// timeout.
func (h *host) watch(s *service, at int32) {
	c := &s.clients
	f := &c.flights[at]
	f.deadline, f.before, f.after = h.now+s.spec.Timeout, c.last, none
	c.last = at
	if f.before != none {
		c.flights[f.before].after = at
		return
	}
	c.first = at
	h.queue.set(h.slots.timeout+h.index(s), f.deadline)
}

// unwatch takes a try out of the list.
func (h *host) unwatch(s *service, at int32) {
	if s.spec.Timeout == 0 {
		return
	}
	c := &s.clients
	f := &c.flights[at]
	if f.after != none {
		c.flights[f.after].before = f.before
	} else {
		c.last = f.before
	}
	if f.before != none {
		c.flights[f.before].after = f.after
		return
	}
	c.first = f.after
	due := never
	if c.first != none {
		due = c.flights[c.first].deadline
	}
	h.queue.set(h.slots.timeout+h.index(s), due)
}

// onTimeout gives up the first try of the list. The service works on it
// nevertheless.
func (h *host) onTimeout(i int) {
	s := h.works[i].service
	h.lost(s, s.clients.first)
}

// waiting is the flight of a try, if its client still waits for that one.
func (c *clients) waiting(it item) *flight {
	f := &c.flights[it.flight]
	if f.number != it.number || f.tries != it.try || !f.away {
		return nil
	}
	return f
}

// answered is the service's good answer; one to a try that was given up comes
// too late.
func (h *host) answered(s *service, it item) {
	c := &s.clients
	f := c.waiting(it)
	if f == nil {
		return
	}
	h.unwatch(s, it.flight)
	took := h.now - f.arrived
	c.answered++
	if c.classes != nil {
		c.classes[f.class].answered++
	}
	if took <= s.spec.Timeout {
		c.slot(f.arrived-s.work.Start).good++
	}
	h.ended(s, it.flight)
}

// refuse is the service's answer where a queue is full.
func (h *host) refuse(s *service, it item) {
	if s.clients.waiting(it) == nil {
		return
	}
	s.clients.refused++
	h.lost(s, it.flight)
}

// lost is a try that came to nothing: it is tried again, or the request has
// failed.
func (h *host) lost(s *service, at int32) {
	c := &s.clients
	f := &c.flights[at]
	h.unwatch(s, at)
	f.away = false
	r := &s.spec.Retries
	if int(f.tries) > r.Max || r.Budget > 0 && c.earned < 1 {
		c.failed++
		h.ended(s, at)
		return
	}
	if r.Budget > 0 {
		c.earned--
	}
	after := time.Duration(float64(r.Backoff) * (0.5 + h.rng.Float64()))
	c.delay(retry{h.now + after, at})
	h.queue.set(h.slots.retry+h.index(s), c.retries[0].at)
}

// onRetry sends the first that waits for its next try.
func (h *host) onRetry(i int) {
	s := h.works[i].service
	c := &s.clients
	at := c.due()
	next := never
	if len(c.retries) > 0 {
		next = c.retries[0].at
	}
	h.queue.set(h.slots.retry+i, next)
	h.send(s, at)
}

// ended frees a flight, and counts how long it took.
func (h *host) ended(s *service, at int32) {
	c := &s.clients
	f := &c.flights[at]
	h.took(s, f)
	f.number++ // whatever the service still has of it is nobody's
	f.after = c.free
	c.free = at
	c.live--
}

// took counts a request's time from its arrival up to now.
func (h *host) took(s *service, f *flight) {
	h.measured(s.work, h.now-f.arrived)
	if c := &s.clients; c.classes != nil {
		c.classes[f.class].latency.add(h.now - f.arrived)
	}
}

// unfinished counts what is on its way at the end, with the time that it has had.
func (h *host) unfinished(s *service) {
	c := &s.clients
	free := make([]bool, len(c.flights))
	for at := c.free; at != none; at = c.flights[at].after {
		free[at] = true
	}
	for at := range c.flights {
		if !free[at] {
			h.took(s, &c.flights[at])
		}
	}
}

// delay adds to the heap of retries.
func (c *clients) delay(r retry) {
	c.retries = append(c.retries, r)
	i := len(c.retries) - 1
	for i > 0 && c.retries[i].before(c.retries[(i-1)/2]) {
		c.retries[i], c.retries[(i-1)/2] = c.retries[(i-1)/2], c.retries[i]
		i = (i - 1) / 2
	}
}

// due takes the first of the heap.
func (c *clients) due() int32 {
	at, last := c.retries[0].flight, len(c.retries)-1
	c.retries[0] = c.retries[last]
	c.retries = c.retries[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if c.retries[child].before(c.retries[least]) {
				least = child
			}
		}
		if least == i {
			return at
		}
		c.retries[i], c.retries[least] = c.retries[least], c.retries[i]
		i = least
	}
}

func (r retry) before(o retry) bool { return r.at < o.at || r.at == o.at && r.flight < o.flight }
