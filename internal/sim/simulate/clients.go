package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

const (
	// maxFlights bounds the outstanding requests. Clients do not send more, and count them as unfinished.
	maxFlights = 100_000
	// maxEarned bounds the retries that a budget can save up.
	maxEarned = 100
	// none ends a list of flights.
	none int32 = -1
)

// flight is an outstanding request, as its client sees it.
type flight struct {
	arrived time.Duration
	work    time.Duration // the same for each try
	sent    time.Duration // of the current try
	before  int32         // in the list of tries by deadline, or of free flights
	after   int32
	number  uint32 // counts the requests that used this place
	tries   uint8
	class   uint8
	shard   uint8 // of the current try
	away    bool  // a try is outstanding; false: the next try waits
}

// clients send requests to a service, or its shards, and count the results.
type clients struct {
	spec     *scenario.Server
	shards   []*service
	balancer *balance.Balancer // nil: there is one shard
	salt     uint64            // for the requests' keys
	work     *work             // of the first shard
	name     string            // in the outcome
	latency  *histogram
	lead     int // index of work, whose slots in the queue they use

	flights     []flight
	free        int32
	first, last int32   // outstanding tries, by deadline
	retries     []retry // a heap
	streams     int     // the first one in host.streams
	earned      float64 // retries that the budget has left

	answered, failed, refused, unsent uint64
	live                              int
	classes                           []class // if there are several
	slots                             []slot  // nil: the load does not fall, so no recovery
}

// class has the figures of one class of requests.
type class struct {
	answered uint64
	latency  histogram
}

// addClients gives a service its clients. A later shard joins those of the first shard.
func (h *host) addClients(i int) {
	w := &h.works[i]
	s := w.service
	if w.Shard > 0 {
		s.clients = h.works[i-w.Shard].service.clients
		s.clients.shards = append(s.clients.shards, s)
		return
	}
	c := &clients{
		spec: w.Server, shards: []*service{s}, work: w, name: w.Name, latency: &w.latency, lead: i,
		free: none, first: none, last: none, streams: len(h.streams),
	}
	s.clients = c
	if w.Shards != nil {
		all := histogram{}
		c.balancer, c.salt, c.name, c.latency = balance.New(w.Shards.Balance), h.rng.Uint64(), w.Shards.Name, &all
	}
	for n := range w.Server.Classes {
		h.streams = append(h.streams, stream{clients: c, class: n, pace: newPace(w.Phases, w.Start)})
	}
	if len(w.Server.Classes) > 1 {
		c.classes = make([]class, len(w.Server.Classes))
		for n := range c.classes {
			c.classes[n].latency = histogram{}
		}
	}
	if w.Server.Timeout > 0 && fall(w.Phases) != never {
		c.slots = make([]slot, (h.scenario.Duration-w.Start)/slotLength+1)
	}
}

// send makes a request's next try.
func (h *host) send(c *clients, at int32) {
	f := &c.flights[at]
	f.tries++
	f.away = true
	f.sent = h.now
	if c.balancer != nil {
		shard := c.balancer.Pick(h.now, balance.Key(c.salt, uint64(at)<<32|uint64(f.number)))
		c.balancer.Sent(shard)
		f.shard = uint8(shard)
	}
	if c.spec.Timeout > 0 {
		h.watch(c, at)
	}
	h.arrive(c.shards[f.shard], item{work: f.work, flight: at, number: f.number, try: f.tries, class: f.class})
}

// waiting returns the flight of a try, if its client still waits for that try.
func (c *clients) waiting(it item) *flight {
	f := &c.flights[it.flight]
	if f.number != it.number || f.tries != it.try || !f.away {
		return nil
	}
	return f
}

// answered handles the service's good answer. An answer to a try that timed out comes too late.
func (h *host) answered(s *service, it item) {
	c := s.clients
	f := c.waiting(it)
	if f == nil {
		return
	}
	h.unwatch(c, it.flight)
	h.countTry(c, f, true)
	took := h.now - f.arrived
	c.answered++
	if c.classes != nil {
		c.classes[f.class].answered++
	}
	if took <= c.spec.Timeout {
		c.slot(f.arrived-c.work.Start).good++
	}
	h.endRequest(c, it.flight)
}

// refuse handles the service's answer from a full queue.
func (h *host) refuse(s *service, it item) {
	c := s.clients
	if c.waiting(it) == nil {
		return
	}
	c.refused++
	s.refused++
	h.tryFailed(c, it.flight)
}

// tryFailed handles a failed try: a retry follows, or the request has failed.
func (h *host) tryFailed(c *clients, at int32) {
	f := &c.flights[at]
	h.unwatch(c, at)
	f.away = false
	h.countTry(c, f, false)
	r := &c.spec.Retries
	if int(f.tries) > r.Max || r.Budget > 0 && c.earned < 1 {
		c.failed++
		h.endRequest(c, at)
		return
	}
	if r.Budget > 0 {
		c.earned--
	}
	after := time.Duration(float64(r.Backoff) * (0.5 + h.rng.Float64()))
	c.pushRetry(retry{h.now + after, at})
	h.queue.set(h.slots.retry+c.lead, c.retries[0].at)
}

// countTry counts a try's end for its shard.
func (h *host) countTry(c *clients, f *flight, good bool) {
	if c.balancer == nil {
		return
	}
	c.balancer.Ended(h.now, int(f.shard), good)
	s := c.shards[f.shard]
	h.measured(s.work, h.now-f.sent)
	if good {
		s.answered++
	}
}

// endRequest frees a flight, and counts its time.
func (h *host) endRequest(c *clients, at int32) {
	f := &c.flights[at]
	h.countTime(c, f)
	f.number++ // answers of the service to older tries no longer match
	f.after = c.free
	c.free = at
	c.live--
}

// countTime counts a request's time from its arrival up to now.
func (h *host) countTime(c *clients, f *flight) {
	c.latency.add(h.now - f.arrived)
	if h.times != nil {
		h.times(c.name, h.now-f.arrived)
	}
	if c.classes != nil {
		c.classes[f.class].latency.add(h.now - f.arrived)
	}
}

// unfinished counts the outstanding requests at the end, with their time so far.
func (h *host) unfinished(c *clients) {
	free := make([]bool, len(c.flights))
	for at := c.free; at != none; at = c.flights[at].after {
		free[at] = true
	}
	for at := range c.flights {
		f := &c.flights[at]
		if free[at] {
			continue
		}
		h.countTime(c, f)
		if c.balancer != nil && f.away {
			s := c.shards[f.shard]
			h.measured(s.work, h.now-f.sent)
			s.unfinished++
		}
	}
}
