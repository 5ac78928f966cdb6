package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario"
)

// wholeOutcome is a service as its clients saw it, with the CPU time of all its shards.
func (h *host) wholeOutcome(c *clients) scenario.WorkloadOutcome {
	h.unfinished(c)
	used := time.Duration(0)
	for _, s := range c.shards {
		used += s.used()
	}
	seconds := used.Seconds()
	o := scenario.WorkloadOutcome{Latencies: c.latency.figures(c.answered)}
	o.Refused, o.Unfinished = c.refused, uint64(c.live)+c.unsent
	o.CPUSeconds, o.RecoverySeconds = &seconds, c.recovery()
	if c.spec.Timeout > 0 {
		o.Failed = &c.failed
	}
	for i := range c.shards {
		marked, dead := h.marks(c, i)
		if marked == nil {
			break
		}
		if i > 0 {
			*marked += *o.MarkedDead
			*dead += *o.DeadSeconds
		}
		o.MarkedDead, o.DeadSeconds = marked, dead
	}
	if c.classes != nil {
		o.Classes = map[string]scenario.Latencies{}
		for i := range c.classes {
			o.Classes[c.spec.Classes[i].Name] = c.classes[i].latency.figures(c.classes[i].answered)
		}
	}
	return o
}

// shardOutcome has the tries of one shard, after wholeOutcome.
func (h *host) shardOutcome(w *work) scenario.WorkloadOutcome {
	s := w.service
	seconds := s.used().Seconds()
	o := scenario.WorkloadOutcome{Latencies: w.latency.figures(s.answered)}
	o.Refused, o.Unfinished, o.CPUSeconds = s.refused, s.unfinished, &seconds
	o.MarkedDead, o.DeadSeconds = h.marks(s.clients, w.Shard)
	return o
}

// marks returns how often and how long a shard was dead; nil: clients do not mark.
func (h *host) marks(c *clients, shard int) (*uint64, *float64) {
	if c.balancer == nil || c.work.Shards.Balance.DeadAfter == 0 {
		return nil, nil
	}
	times, dead := c.balancer.Marks(shard, h.now)
	seconds := dead.Seconds()
	return &times, &seconds
}

// used is the CPU time of a service, with its collector's.
func (s *service) used() time.Duration {
	used := s.work.used
	if s.world != nil {
		used += s.world.work.used
	}
	return used
}
