package loadgen

import (
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/scenario/balance"
)

// maxSockets bounds the connections to all shards together.
const maxSockets = 512

// Shards of a service, between which the requests are shared out.
type Shards struct {
	Addrs []string // of each one's [service.Process]
	Rule  balance.Rule
}

func (s *Shards) check(connections int) error {
	if s == nil {
		return nil
	}
	if err := s.Rule.Check(); err != nil {
		return err
	}
	if len(s.Addrs) != s.Rule.Shards {
		return fmt.Errorf("%d addresses of %d shards", len(s.Addrs), s.Rule.Shards)
	}
	if connections*len(s.Addrs) > maxSockets {
		return fmt.Errorf("%d connections to each of %d shards: %d are allowed in all", connections, len(s.Addrs), maxSockets)
	}
	for i, addr := range s.Addrs {
		if addr == "" {
			return fmt.Errorf("shard %d has no address", i+1)
		}
	}
	return nil
}

// count is how many are true.
func count(all ...bool) int {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// ShardResult is the tries of one shard in measured phases.
type ShardResult struct {
	Answered   uint64
	Refused    uint64
	TimedOut   uint64
	Unfinished uint64 // still on their way at the end
	// Latency of all tries, from the sending on: one that was refused or given up
	// counts up to that, one on its way up to the end.
	Latency Latency
	// Marked dead so many times, for so long in all, over the whole plan.
	Marked uint64
	Dead   time.Duration
}

// shards is what a generator knows of each, and which gets a try.
type shards struct {
	balancer *balance.Balancer // nil: there is one
	seed     uint64
	results  []ShardResult
}

func newShards(p Plan) *shards {
	s := &shards{seed: p.Seed}
	if p.Shards != nil {
		s.balancer, s.results = balance.New(p.Shards.Rule), make([]ShardResult, p.Shards.Rule.Shards)
	}
	return s
}

// pick chooses where a request's next try goes.
func (s *shards) pick(now time.Duration, number uint64) int {
	if s.balancer == nil {
		return 0
	}
	return s.balancer.Pick(now, balance.Key(s.seed, number))
}

func (s *shards) sent(shard int) {
	if s.balancer != nil {
		s.balancer.Sent(shard)
	}
}

// ended notes a try's end; the result is where it is counted, nil where nowhere.
func (s *shards) ended(now, sent time.Duration, shard int, good, measured bool) *ShardResult {
	if s.balancer == nil {
		return nil
	}
	s.balancer.Ended(now, shard, good)
	return s.count(now, sent, shard, measured)
}

func (s *shards) count(now, sent time.Duration, shard int, measured bool) *ShardResult {
	if s.balancer == nil || !measured {
		return nil
	}
	r := &s.results[shard]
	r.Latency.Add(now - sent)
	return r
}

// finish gives all results at the end.
func (s *shards) finish(now time.Duration) []ShardResult {
	for i := range s.results {
		s.results[i].Marked, s.results[i].Dead = s.balancer.Marks(i, now)
	}
	return s.results
}
