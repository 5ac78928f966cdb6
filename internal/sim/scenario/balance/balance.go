package balance

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Kind of choosing.
type Kind string

// The kinds.
const (
	RoundRobin       Kind = "round-robin"       // one after the other
	LeastOutstanding Kind = "least-outstanding" // the one with the fewest tries on their way
	Hash             Kind = "hash"              // by the request's key: always the same one
)

// Bounds of a [Rule].
const (
	MaxShards    = 64
	MaxSkew      = 4
	MaxDeadAfter = 1000
	MaxDeadFor   = time.Hour
)

// Rule is how clients share requests out over the shards of a service.
type Rule struct {
	Shards int // 2 to MaxShards
	Kind   Kind
	// Skew of Hash, 0 to MaxSkew: the k-th shard has 1/k^Skew of the first one's
	// load (Zipf's law).
	Skew float64
	// DeadAfter so many failed tries of a shard one after the other it is marked
	// dead; 0: none ever is.
	DeadAfter int
	// DeadFor is for how long.
	DeadFor time.Duration
}

// Check says what is wrong with a rule, nil if nothing is.
func (r Rule) Check() error {
	switch {
	case r.Shards < 2 || r.Shards > MaxShards:
		return fmt.Errorf("%d shards: give 2 to %d", r.Shards, MaxShards)
	case r.Kind != RoundRobin && r.Kind != LeastOutstanding && r.Kind != Hash:
		return fmt.Errorf("balance %.40q: choose from %s, %s, %s", string(r.Kind), RoundRobin, LeastOutstanding, Hash)
	case !(r.Skew >= 0 && r.Skew <= MaxSkew):
		return fmt.Errorf("skew %g: outside 0 to %d", r.Skew, MaxSkew)
	case r.Skew > 0 && r.Kind != Hash:
		return fmt.Errorf("skew %g: %s gives every shard the same", r.Skew, r.Kind)
	case r.DeadAfter < 0 || r.DeadAfter > MaxDeadAfter:
		return fmt.Errorf("dead after %d failed tries: outside 0 to %d", r.DeadAfter, MaxDeadAfter)
	case r.DeadFor < 0 || r.DeadFor > MaxDeadFor || (r.DeadAfter > 0) != (r.DeadFor > 0):
		return fmt.Errorf("dead for %v: outside 0 to %v, or without a number of failed tries", r.DeadFor, MaxDeadFor)
	}
	return nil
}

// Share of shard i, from 0 on, of all requests while none is dead; 0 to 1.
func (r Rule) Share(i int) float64 {
	sum := 0.0
	for k := range r.Shards {
		sum += r.weight(k)
	}
	return r.weight(i) / sum
}

func (r Rule) weight(i int) float64 { return math.Pow(float64(i+1), -r.Skew) }

// Balancer is one client's view of the shards. Its methods allocate nothing. Times
// are on one clock of the caller's choice.
type Balancer struct {
	rule   Rule
	weight []float64
	shards []shard
	turn   int
}

// shard is what the client knows of one.
type shard struct {
	outstanding int
	failed      int // tries, one after the other
	marked      bool
	until       time.Duration // it is dead, where marked
	marks       uint64
	dead        time.Duration // in all, up to until
}

// New is a client that has sent nothing yet; the rule is a good one.
func New(r Rule) *Balancer {
	b := &Balancer{rule: r, weight: make([]float64, r.Shards), shards: make([]shard, r.Shards), turn: -1}
	for i := range b.weight {
		b.weight[i] = r.weight(i)
	}
	return b
}

// Pick chooses the shard, from 0 on, for a try. key is the request's, its bits
// well mixed: [Hash] gives the same key to the same shard, and while that is dead
// to the same other one. Where all are dead, none is.
func (b *Balancer) Pick(now time.Duration, key uint64) int {
	all := true
	for i := range b.shards {
		if b.Alive(i, now) {
			all = false
			break
		}
	}
	use := func(i int) bool { return all || b.Alive(i, now) }
	n := len(b.shards)
	if b.rule.Kind == Hash {
		i := b.draw(key, func(int) bool { return true })
		if !use(i) {
			i = b.draw(mix(key), use)
		}
		return i
	}
	best := -1
	for k := range n {
		i := (b.turn + 1 + k) % n
		if !use(i) {
			continue
		}
		if b.rule.Kind == RoundRobin {
			best = i
			break
		}
		if best < 0 || b.shards[i].outstanding < b.shards[best].outstanding {
			best = i
		}
	}
	b.turn = best
	return best
}

// draw chooses by weight among those that may be used; there is one.
func (b *Balancer) draw(key uint64, use func(int) bool) int {
	sum := 0.0
	for i, w := range b.weight {
		if use(i) {
			sum += w
		}
	}
	at, last := float64(key>>11)/(1<<53)*sum, 0
	for i, w := range b.weight {
		if !use(i) {
			continue
		}
		if last = i; at < w {
			return i
		}
		at -= w
	}
	return last
}

// Sent notes a try on its way.
func (b *Balancer) Sent(i int) { b.shards[i].outstanding++ }

// Ended notes what a try came to: a good answer, or a refusal or a timeout.
func (b *Balancer) Ended(now time.Duration, i int, good bool) {
	s := &b.shards[i]
	s.outstanding--
	if good {
		s.failed = 0
		return
	}
	if b.rule.DeadAfter == 0 || !b.Alive(i, now) {
		return
	}
	if s.failed++; s.failed < b.rule.DeadAfter {
		return
	}
	s.marked, s.until = true, now+b.rule.DeadFor
	s.marks++
	s.dead += b.rule.DeadFor
	// When it is back, one failed try is enough, until one is answered.
	s.failed = b.rule.DeadAfter - 1
}

// Alive says whether a shard is not marked dead.
func (b *Balancer) Alive(i int, now time.Duration) bool {
	s := &b.shards[i]
	return !s.marked || now >= s.until
}

// Marks is how often a shard was marked dead, and for how long in all up to now.
func (b *Balancer) Marks(i int, now time.Duration) (times uint64, dead time.Duration) {
	s := &b.shards[i]
	return s.marks, s.dead - max(0, s.until-now)
}

// Key makes a request's key of a number and the clients' own.
func Key(seed, number uint64) uint64 { return mix(seed ^ mix(number)) }

// mix spreads the bits of a number: two multiplications folded to 64 bits, with
// odd constants from the digits of pi and e.
func mix(x uint64) uint64 {
	high, low := bits.Mul64(x^0x243f6a8885a308d3, 0xb7e151628aed2a6b)
	high, low = bits.Mul64(high^low^0x13198a2e03707344, 0x9e3779b97f4a7c15)
	return high ^ low
}
