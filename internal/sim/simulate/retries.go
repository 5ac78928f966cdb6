package simulate

import "time"

// retry is the time of a request's next try.
type retry struct {
	at     time.Duration
	flight int32
}

// onRetry sends the first request that waits for its next try.
func (h *host) onRetry(i int) {
	c := h.works[i].service.clients
	at := c.popRetry()
	next := never
	if len(c.retries) > 0 {
		next = c.retries[0].at
	}
	h.queue.set(h.slots.retry+i, next)
	h.send(c, at)
}

// pushRetry adds to the heap of retries.
func (c *clients) pushRetry(r retry) {
	c.retries = append(c.retries, r)
	i := len(c.retries) - 1
	for i > 0 && c.retries[i].before(c.retries[(i-1)/2]) {
		c.retries[i], c.retries[(i-1)/2] = c.retries[(i-1)/2], c.retries[i]
		i = (i - 1) / 2
	}
}

// popRetry takes the first of the heap.
func (c *clients) popRetry() int32 {
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
