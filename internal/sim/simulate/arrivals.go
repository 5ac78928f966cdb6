package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// stream has the arrivals of one class.
type stream struct {
	clients *clients
	class   int
	pace    pace
	next    int // index in At
}

func (h *host) expectAll(c *clients) {
	for n := range c.spec.Classes {
		h.expect(c.streams + n)
	}
}

// expect makes a stream's next arrival due.
func (h *host) expect(at int) {
	st := &h.streams[at]
	a := &st.clients.spec.Classes[st.class].Arrivals
	next := never
	switch {
	case a.PerSecond > 0:
		gap := float64(a.Burst) / a.PerSecond
		if !a.Regular {
			gap *= h.rng.ExpFloat64()
		}
		next = st.pace.spend(time.Duration(min(gap, scenario.MaxDuration.Seconds()) * float64(time.Second)))
	case st.next < len(a.At):
		next = st.clients.work.Start + a.At[st.next]
		st.next++
	}
	h.queue.set(h.slots.arrive+at, next)
}

// onArrival handles a stream's next requests.
func (h *host) onArrival(at int) {
	st := &h.streams[at]
	c := st.clients
	class := &c.spec.Classes[st.class]
	for range class.Arrivals.Burst {
		h.request(c, st.class, h.draw(class.Work))
	}
	h.expect(at)
}

// request makes a new request.
func (h *host) request(c *clients, class int, work time.Duration) {
	c.slot(h.now-c.work.Start).intended++
	c.earned = min(maxEarned, c.earned+c.spec.Retries.Budget)
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
	h.send(c, at)
}
