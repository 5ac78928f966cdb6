package rules

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

const ms = time.Millisecond

// quotaOf is a limit of 100 ms with that quota.
func quotaOf(quota time.Duration) bandwidth.Limit {
	return bandwidth.Limit{Quota: quota, Period: 100 * ms}
}

// TestKoordinatorQuota has the cases of TestCPUBurst_applyCFSQuotaBurst (cpu_burst_test.go), all of a limit of 2 CPUs.
func TestKoordinatorQuota(t *testing.T) {
	auto := DefaultKoordinator()
	burstOnly, noSeconds, illegal := auto, auto, auto
	burstOnly.QuotaBurst = false
	noSeconds.QuotaBurstSeconds = 0
	illegal.QuotaBurstPercent = 90
	idle, cooling, overload := &Node{SharedCPUs: 8, UsedCPUs: 3}, &Node{SharedCPUs: 8, UsedCPUs: 3.75}, &Node{SharedCPUs: 8, UsedCPUs: 5}
	for _, c := range []struct {
		name      string
		rule      Koordinator
		node      *Node
		throttled int64
		now, want time.Duration
	}{
		{"burst only: back to the limit", burstOnly, idle, 5, 400 * ms, 200 * ms},
		{"cooling: stays", auto, cooling, 5, 400 * ms, 400 * ms},
		{"unknown: stays", auto, nil, 5, 400 * ms, 400 * ms},
		{"overload: not below the limit", auto, overload, 5, 202 * ms, 200 * ms},
		{"overload: a fifth less", auto, overload, 5, 400 * ms, 320 * ms},
		{"overload, not throttled: a fifth less", auto, overload, 0, 400 * ms, 320 * ms},
		{"a period of 0 s: a fifth less", noSeconds, idle, 5, 400 * ms, 320 * ms},
		{"below 100 %: the limit", illegal, idle, 5, 400 * ms, 200 * ms},
		{"not throttled: stays", auto, idle, 0, 580 * ms, 580 * ms},
		{"three times the limit at most", auto, idle, 5, 580 * ms, 600 * ms},
		{"a fifth more", auto, idle, 5, 200 * ms, 240 * ms},
	} {
		s, _ := c.rule.Next(Observed{Spec: Resources{1, 2}, Now: Setting{Limit: quotaOf(c.now)}, Node: c.node,
			Used: 1500 * ms, For: time.Second, Periods: 10, Throttled: c.throttled})
		if s.Limit.Quota != c.want {
			t.Errorf("%s: %v, want %v", c.name, s.Limit.Quota, c.want)
		}
	}
	unlimited := Setting{Limit: quotaOf(bandwidth.NoQuota)}
	if s, _ := auto.Next(Observed{Now: unlimited, Node: idle, Periods: 10, Throttled: 5}); s != unlimited {
		t.Errorf("without a limit: %+v", s)
	}
}

// TestKoordinatorBurst has the cases of TestCPUBurst_applyCPUBurst, and the policy none.
func TestKoordinatorBurst(t *testing.T) {
	off := DefaultKoordinator()
	off.Burst = false
	for _, c := range []struct {
		rule  Koordinator
		limit float64
		want  time.Duration
	}{{DefaultKoordinator(), 5, 5 * time.Second}, {DefaultKoordinator(), 3, 3 * time.Second}, {DefaultKoordinator(), 0, 0}, {off, 5, 0}} {
		if s, _ := c.rule.Next(Observed{Spec: Resources{LimitCPUs: c.limit}}); s.Limit.Burst != c.want {
			t.Errorf("limit %v: burst %v, want %v", c.limit, s.Limit.Burst, c.want)
		}
	}
}

// TestKoordinatorNode has the cases of TestCPUBurst_getNodeStateForBurst: 16 CPUs, of which 8 are promised.
func TestKoordinatorNode(t *testing.T) {
	for _, c := range []struct {
		node *Node
		want nodeState
	}{{nil, nodeUnknown}, {&Node{8, 3}, nodeIdle}, {&Node{8, 5}, nodeOverload}, {&Node{8, 3.75}, nodeCooling}, {&Node{}, nodeOverload}} {
		if got := DefaultKoordinator().stateOf(c.node); got != c.want {
			t.Errorf("%+v: state %d, want %d", c.node, got, c.want)
		}
	}
}

// TestKoordinatorTokens has the cases of Test_burstLimiter_Allow: 10 s after the bucket was as full as said.
func TestKoordinatorTokens(t *testing.T) {
	for _, c := range []struct {
		seconds int64
		full    float64
		percent time.Duration
		allowed bool
		tokens  int64
	}{
		{100, 1, 150, true, 4500},
		{100, 0.01, 200, false, -950},
		{10, 0.01, 200, false, -500},
		{100, 0.1, 40, true, 1100},
		{100, 0.9, 40, true, 5000},
		{100, 0.1, 80, true, 500}, // neither spent nor saved
	} {
		k := DefaultKoordinator()
		k.QuotaBurstSeconds, k.QuotaBurstPercent, k.TokenShare = c.seconds, 150, c.full
		seen := Observed{Spec: Resources{LimitCPUs: 2}, Used: 2 * c.percent * time.Second / 100, For: time.Second}
		_, k = k.allow(seen)
		seen.At = 10 * time.Second
		if allowed, k := k.allow(seen); allowed != c.allowed || k.tokens != c.tokens {
			t.Errorf("%+v: allowed %v, %d tokens", c, allowed, k.tokens)
		}
	}
}

// TestKoordinatorsDefaultIsRefused: the burst by default is above the quota even where the quota is at its highest, and a burst
// that was taken at a raised quota keeps the quota from falling (koordinator issues 2326 and 2778).
func TestKoordinatorsDefaultIsRefused(t *testing.T) {
	kernel, err := bandwidth.For("6.12")
	if err != nil {
		t.Fatal(err)
	}
	inForce := quotaOf(200 * ms)
	seen := Observed{Spec: Resources{LimitCPUs: 2}, Node: &Node{8, 1}, Used: time.Second, For: time.Second, Periods: 10, Throttled: 10}
	var k Rule = DefaultKoordinator()
	for range 20 {
		seen.Now.Limit = inForce
		var s Setting
		s, k = k.Next(seen)
		written := inForce // the burst is written first
		written.Burst = s.Limit.Burst
		if refused := written.Check(&kernel); refused == nil || refused.Setting != "burst" {
			t.Fatalf("%+v: %v", written, refused)
		}
		inForce.Quota = s.Limit.Quota
	}
	if inForce.Quota != 600*ms {
		t.Errorf("the quota ends at %v", inForce.Quota)
	}
	lower := DefaultKoordinator()
	lower.BurstPercent = 200
	seen.Now.Limit, seen.Node = bandwidth.Limit{Quota: 400 * ms, Period: 100 * ms, Burst: 400 * ms}, &Node{8, 8}
	s, _ := lower.Next(seen)
	if s.Limit.Burst != 400*ms || s.Limit.Quota != 320*ms || s.Limit.Check(&kernel) == nil {
		t.Errorf("a fall to %+v is not refused", s.Limit)
	}
	lower.BurstPercent = 100
	if s, _ := lower.Next(seen); s.Limit.Burst != 200*ms || s.Limit.Check(&kernel) != nil {
		t.Errorf("with 100 %%: %+v is refused", s.Limit)
	}
}
