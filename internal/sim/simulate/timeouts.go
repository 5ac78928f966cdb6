package simulate

// Outstanding tries are in a list by deadline. All tries have the same timeout, so this is the order in which
// clients sent them.

// watch puts a try at the end of the list.
func (h *host) watch(c *clients, at int32) {
	f := &c.flights[at]
	f.before, f.after = c.last, none
	c.last = at
	if f.before != none {
		c.flights[f.before].after = at
		return
	}
	c.first = at
	h.queue.set(h.slots.timeout+c.lead, f.sent+c.spec.Timeout)
}

// unwatch takes a try out of the list.
func (h *host) unwatch(c *clients, at int32) {
	if c.spec.Timeout == 0 {
		return
	}
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
		due = c.flights[c.first].sent + c.spec.Timeout
	}
	h.queue.set(h.slots.timeout+c.lead, due)
}

// onTimeout gives up the first try of the list. The service still works on it.
func (h *host) onTimeout(i int) {
	c := h.works[i].service.clients
	h.tryFailed(c, c.first)
}
