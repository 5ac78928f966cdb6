package simulate

import (
	"time"

	"github.com/unthrottle/unthrottle/scenario"
)

// wholeOutcome is what a service's clients have seen of it, and of all its shards
// what it used.
func (h *host) wholeOutcome(c *clients) scenario.WorkloadOutcome {
	h.unfinished(c)
	used := time.Duration(0)
	for _, s := range c.shards {
		used += s.used()
	}
	seconds, l := used.Seconds(), c.latency
	o := scenario.WorkloadOutcome{
		Count: c.answered, P50: l.quantile(0.5), P90: l.quantile(0.9), P95: l.quantile(0.95), P99: l.quantile(0.99), Max: l.maximum(),
		Refused: c.refused, Unfinished: uint64(c.live) + c.unsent, CPUSeconds: &seconds, RecoverySeconds: c.recovery(),
	}
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
		o.Classes = map[string]scenario.ClassOutcome{}
		for i := range c.classes {
			of := &c.classes[i]
			l := &of.latency
			o.Classes[c.spec.Classes[i].Name] = scenario.ClassOutcome{
				Count: of.answered, P50: l.quantile(0.5), P90: l.quantile(0.9), P95: l.quantile(0.95), P99: l.quantile(0.99), Max: l.maximum(),
			}
		}
	}
	return o
}

// shardOutcome is the tries of one shard, after wholeOutcome.
func (h *host) shardOutcome(w *work) scenario.WorkloadOutcome {
	s, l := w.service, &w.latency
	seconds := s.used().Seconds()
	o := scenario.WorkloadOutcome{
		Count: s.answered, P50: l.quantile(0.5), P90: l.quantile(0.9), P95: l.quantile(0.95), P99: l.quantile(0.99), Max: l.maximum(),
		Refused: s.refused, Unfinished: s.unfinished, CPUSeconds: &seconds,
	}
	o.MarkedDead, o.DeadSeconds = h.marks(s.clients, w.Shard)
	return o
}

// marks is how often and how long a shard was dead; nil where nobody marks.
func (h *host) marks(c *clients, shard int) (*uint64, *float64) {
	if c.balancer == nil || c.work.Shards.Balance.DeadAfter == 0 {
		return nil, nil
	}
	times, dead := c.balancer.Marks(shard, h.now)
	seconds := dead.Seconds()
	return &times, &seconds
}

// used is the CPU time of a service, its collector's too.
func (s *service) used() time.Duration {
	used := s.work.used
	if s.world != nil {
		used += s.world.work.used
	}
	return used
}
