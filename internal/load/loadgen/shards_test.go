package loadgen

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/scenario/balance"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// shardsOf is a plan against several services.
func shardsOf(rule balance.Rule, perSecond float64, d time.Duration, processes ...*service.Process) Plan {
	p := steady("", perSecond, d)
	rule.Shards = len(processes)
	p.Shards = &Shards{Rule: rule}
	for _, s := range processes {
		p.Shards.Addrs = append(p.Shards.Addrs, s.Addr())
	}
	return p
}

// Each shard gets its share, and counts what the generator says of it.
func TestShardsShare(t *testing.T) {
	require.Kernel(t)
	for _, rule := range []balance.Rule{{Kind: balance.RoundRobin}, {Kind: balance.Hash, Skew: 1}} {
		a, b := serving(t, one(2, 1000, 200*time.Microsecond)), serving(t, one(2, 1000, 200*time.Microsecond))
		p := shardsOf(rule, 300, time.Second, a, b)
		r := run(t, p)
		result := r.Phases[0].Streams[0]
		if result.Errors() != 0 || len(r.Shards) != 2 || r.Shards[0].Answered+r.Shards[1].Answered != result.Answered {
			t.Fatalf("%s: %+v, shards %+v", rule.Kind, result, r.Shards)
		}
		for i, s := range []*service.Process{a, b} {
			counted, err := s.Stats()
			if err != nil || counted.Served != r.Shards[i].Answered || r.Shards[i].Latency.Count() != counted.Served {
				t.Errorf("%s: shard %d served %d, the generator says %d, %v", rule.Kind, i+1, counted.Served, r.Shards[i].Answered, err)
			}
			share := float64(counted.Served) / float64(result.Answered)
			if want := p.Shards.Rule.Share(i); share < want-0.12 || share > want+0.12 {
				t.Errorf("%s: shard %d has %.2f of the requests, want %.2f", rule.Kind, i+1, share, want)
			}
		}
	}
}

// A shard that answers nothing in time is marked dead, and the requests that it
// would have had go to the other one.
func TestAShardThatHangsIsMarkedDead(t *testing.T) {
	require.Kernel(t)
	require.Alone(t, "how many requests the shard that works answers in time: beside burners it hangs too")
	hangs, works := serving(t, one(1, 1000, 20*time.Second)), serving(t, one(2, 1000, 200*time.Microsecond))
	p := shardsOf(balance.Rule{Kind: balance.RoundRobin, DeadAfter: 3, DeadFor: time.Minute}, 100, 3*time.Second, hangs, works)
	// Longer than a busy host may hold the shard that works off its CPU.
	p.Timeout = 500 * ms
	r := run(t, p)
	bad, good := r.Shards[0], r.Shards[1]
	// Three that timed out, and those sent meanwhile.
	if bad.Marked != 1 || bad.Answered != 0 || bad.TimedOut < 3 || bad.TimedOut > 100 || bad.Dead <= 0 || bad.Dead > 5*time.Second {
		t.Errorf("the one that hangs: %+v", bad)
	}
	if good.Marked != 0 || good.Answered != r.Phases[0].Streams[0].Answered || good.Answered < 100 || good.TimedOut > 0 {
		t.Errorf("the other one: %+v", good)
	}
	// Retries go to the other one too: all but those that failed twice are answered.
	p.Retries, p.Seed = Retries{Max: 1}, 2
	if s := run(t, p).Phases[0].Streams[0]; s.Failed > s.Answered/20 {
		t.Errorf("with a retry: %+v", s)
	}
}

func TestBadShards(t *testing.T) {
	rule := balance.Rule{Shards: 2, Kind: balance.RoundRobin}
	for name, shards := range map[string]Shards{
		"an address too few": {Rule: rule, Addrs: []string{"@a"}},
		"an empty address":   {Rule: rule, Addrs: []string{"@a", ""}},
		"a bad rule":         {Rule: balance.Rule{Shards: 2}, Addrs: []string{"@a", "@b"}},
	} {
		p := steady("", 1, time.Second)
		p.Shards = &shards
		if p.Check() == nil {
			t.Errorf("%s: taken", name)
		}
		p.Shards.Rule, p.Shards.Addrs = rule, []string{"@a", "@b"}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
		p.Connections = MaxConnections
		p.Shards.Rule.Shards, p.Shards.Addrs = 64, make([]string, 64)
		if p.Check() == nil {
			t.Error("4096 connections: taken")
		}
		p.Addr = "@a"
		if p.Check() == nil {
			t.Error("an address and shards: taken")
		}
	}
}
