package balance

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func counts(b *Balancer, rule Rule, now time.Duration, n int) []int {
	out := make([]int, rule.Shards)
	for i := range n {
		out[b.Pick(now, Key(1, uint64(i)))]++
	}
	return out
}

func TestShares(t *testing.T) {
	const n = 100_000
	for _, rule := range []Rule{
		{Shards: 3, Kind: Hash, Skew: 0.5}, {Shards: 5, Kind: Hash}, {Shards: 64, Kind: Hash, Skew: 1}, {Shards: 4, Kind: RoundRobin},
	} {
		sum := 0.0
		for i, got := range counts(New(rule), rule, 0, n) {
			want := rule.Share(i)
			sum += want
			if math.Abs(float64(got)/n-want) > 4*math.Sqrt(want/n) {
				t.Errorf("%+v: shard %d got %d of %d, want %.3f", rule, i, got, n, want)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%+v: shares sum to %v", rule, sum)
		}
	}
}

// The example of the package's documentation.
func TestWorkedExample(t *testing.T) {
	rule := Rule{Shards: 3, Kind: Hash, Skew: 0.5, DeadAfter: 2, DeadFor: time.Second}
	for i, want := range []float64{0.44, 0.31, 0.25} {
		if math.Abs(rule.Share(i)-want) > 0.005 {
			t.Errorf("shard %d: %.3f", i, rule.Share(i))
		}
	}
	b := New(rule)
	kill(b, 0, 0, 2)
	const n = 100_000
	got := counts(b, rule, 1, n)
	if got[0] != 0 || math.Abs(float64(got[1])/n-0.55) > 0.01 {
		t.Errorf("with the first one dead: %v", got)
	}
}

func kill(b *Balancer, shard int, now time.Duration, failures int) {
	for range failures {
		b.Sent(shard)
		b.Ended(now, shard, false)
	}
}

func TestMarking(t *testing.T) {
	b := New(Rule{Shards: 2, Kind: RoundRobin, DeadAfter: 3, DeadFor: time.Second})
	kill(b, 0, 0, 2)
	b.Sent(0)
	b.Ended(0, 0, true)
	kill(b, 0, 0, 2)
	if !b.alive(0, 0) {
		t.Error("marked although a good answer lies between the failures")
	}
	kill(b, 0, 10, 1)
	if b.alive(0, 10) || b.alive(0, 10+time.Second-1) || !b.alive(0, 10+time.Second) {
		t.Error("not dead for a second")
	}
	kill(b, 0, 20, 10) // those that were on their way
	if b.alive(0, 10+time.Second-1) || !b.alive(0, 10+time.Second) {
		t.Error("failures of a dead one prolong it")
	}
	back := 10 + time.Second
	kill(b, 0, back, 1)
	if b.alive(0, back) {
		t.Error("back, and failing: not marked at once")
	}
	if marks, dead := b.Marks(0, back+time.Second/2); marks != 2 || dead != 3*time.Second/2 {
		t.Errorf("%d marks, dead for %v", marks, dead)
	}
	b.Sent(0)
	b.Ended(back+time.Second, 0, true)
	kill(b, 0, back+time.Second, 2)
	if !b.alive(0, back+time.Second) {
		t.Error("answered, and marked after fewer failures than the first time")
	}
}

func TestLeastOutstanding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{Shards: rapid.IntRange(2, 6).Draw(t, "shards"), Kind: LeastOutstanding, DeadAfter: 2, DeadFor: 5}
		b := New(rule)
		out := make([]int, rule.Shards)
		for now := range time.Duration(200) {
			if rapid.Bool().Draw(t, "end") {
				if i := rapid.IntRange(0, rule.Shards-1).Draw(t, "of"); out[i] > 0 {
					out[i]--
					b.Ended(now, i, rapid.Bool().Draw(t, "good"))
				}
				continue
			}
			i := b.Pick(now, 0)
			anybody := false
			for k := range out {
				anybody = anybody || b.alive(k, now)
			}
			if anybody && !b.alive(i, now) {
				t.Fatalf("shard %d is dead", i)
			}
			for k := range out {
				if (b.alive(k, now) || !anybody) && out[k] < out[i] {
					t.Fatalf("shard %d has %d on their way, %d has %d", i, out[i], k, out[k])
				}
			}
			out[i]++
			b.Sent(i)
		}
	})
}

// A key stays at its shard, and keys of others stay where they are when one dies.
func TestHashMovesTheDeadOnesAlone(t *testing.T) {
	rule := Rule{Shards: 7, Kind: Hash, Skew: 1, DeadAfter: 1, DeadFor: 10}
	b := New(rule)
	for i := range uint64(1000) {
		key := Key(3, i)
		home := b.Pick(0, key)
		dead := New(rule)
		kill(dead, 2, 0, 1)
		if at := dead.Pick(1, key); at == 2 || home != 2 && at != home || at != dead.Pick(2, key) {
			t.Fatalf("key %d: at home in %d, with 2 dead in %d", i, home, at)
		}
	}
	for i := range rule.Shards {
		kill(b, i, 0, 1)
	}
	if got := counts(b, rule, 1, 1000); got[0] == 0 || got[6] == 0 {
		t.Errorf("all dead, and they get %v", got)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for _, kind := range []Kind{RoundRobin, LeastOutstanding, Hash} {
		b := New(Rule{Shards: 8, Kind: kind, DeadAfter: 2, DeadFor: 5})
		key := uint64(0)
		if n := testing.AllocsPerRun(1000, func() {
			key++
			i := b.Pick(time.Duration(key), Key(1, key))
			b.Sent(i)
			b.Ended(time.Duration(key), i, key%3 > 0)
		}); n > 0 {
			t.Errorf("%s: %v allocations per try", kind, n)
		}
	}
}

func TestCheck(t *testing.T) {
	good := Rule{Shards: 2, Kind: Hash, Skew: 1, DeadAfter: 1, DeadFor: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Rule){
		"one shard":    func(r *Rule) { r.Shards = 1 },
		"many":         func(r *Rule) { r.Shards = MaxShards + 1 },
		"a kind":       func(r *Rule) { r.Kind = "random" },
		"skew":         func(r *Rule) { r.Skew = math.NaN() },
		"skew of all":  func(r *Rule) { r.Kind = RoundRobin },
		"after":        func(r *Rule) { r.DeadAfter = -1 },
		"for no time":  func(r *Rule) { r.DeadFor = 0 },
		"for nothing":  func(r *Rule) { r.DeadAfter = 0 },
		"for too long": func(r *Rule) { r.DeadFor = 2 * MaxDeadFor },
	} {
		r := good
		if spoil(&r); r.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
