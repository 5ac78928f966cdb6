package scenario

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// RateLimit bounds the requests that a service, or each shard of one, lets in: a token bucket before its queues. It refuses
// the others at once (seed 000, rate limits per shard).
type RateLimit struct {
	// PerSecond is how many requests are let in on average; 0: there is no limit.
	PerSecond float64
	// Burst is how many are let in at once after a rest, 1 or more.
	Burst int
}

// Admission is the state of a rate limit's bucket. It begins full.
type Admission struct {
	limit  RateLimit
	used   float64 // requests that the bucket lacks
	lastAt time.Duration
}

// Admission returns a full bucket.
func (r RateLimit) Admission() Admission { return Admission{limit: r} }

// Admits takes a request's token at a time, which does not run backwards. false: there is none, and the request is refused.
func (a *Admission) Admits(now time.Duration) bool {
	if a.limit.PerSecond == 0 {
		return true
	}
	a.used = max(0, a.used-(now-a.lastAt).Seconds()*a.limit.PerSecond)
	a.lastAt = now
	if a.used > float64(a.limit.Burst)-1+tinyToken {
		return false
	}
	a.used++
	return true
}

// tinyToken is what rounding may take away from a token.
const tinyToken = 1e-9

func (d *decoder) rateLimit(n *yaml.Node, key string) RateLimit {
	r := RateLimit{Burst: 1}
	d.object(n, key, fields{
		"per_second!": d.number(&r.PerSecond, maxPerSecond),
		"burst":       d.integer(&r.Burst, 1, maxQueue),
	})
	return r
}
