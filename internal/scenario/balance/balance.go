package balance

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// Kind is a way to choose a shard.
type Kind string

// The kinds.
const (
	RoundRobin       Kind = "round-robin"       // one shard after the other
	LeastOutstanding Kind = "least-outstanding" // the shard with the fewest outstanding tries
	Hash             Kind = "hash"              // by the request's key, which always chooses the same shard
)

// Bounds of a [Rule].
const (
	MaxShards    = 64
	MaxSkew      = 4
	MaxDeadAfter = 1000
	MaxDeadFor   = time.Hour
)

// Rule says how clients distribute requests over the shards of a service.
type Rule struct {
	Shards int // 2 to MaxShards
	Kind   Kind
	// Skew of Hash, 0 to MaxSkew: the k-th shard has 1/k^Skew of the first one's load (Zipf's law).
	Skew float64
	// DeadAfter is how many failed tries in a row mark a shard dead; 0: none ever is.
	DeadAfter int
	// DeadFor is how long a marked shard stays dead.
	DeadFor time.Duration
}

// Check returns an error if a rule is out of bounds.
func (r Rule) Check() error {
	switch {
	case r.Shards < 2 || r.Shards > MaxShards:
		return fmt.Errorf("%d shards: give 2 to %d", r.Shards, MaxShards)
	case r.Kind != RoundRobin && r.Kind != LeastOutstanding && r.Kind != Hash:
		return fmt.Errorf("balance %.40q: choose from %s, %s, %s", string(r.Kind), RoundRobin, LeastOutstanding, Hash)
	case !(r.Skew >= 0 && r.Skew <= MaxSkew):
		return fmt.Errorf("skew %g: outside 0 to %d", r.Skew, MaxSkew)
	case r.Skew > 0 && r.Kind != Hash:
		return fmt.Errorf("skew %g: %s gives every shard the same load", r.Skew, r.Kind)
	case r.DeadAfter < 0 || r.DeadAfter > MaxDeadAfter:
		return fmt.Errorf("dead after %d failed tries: outside 0 to %d", r.DeadAfter, MaxDeadAfter)
	case r.DeadFor < 0 || r.DeadFor > MaxDeadFor || (r.DeadAfter > 0) != (r.DeadFor > 0):
		return fmt.Errorf("dead for %v: outside 0 to %v, or without a number of failed tries", r.DeadFor, MaxDeadFor)
	}
	return nil
}

// Share is the share of shard i, from 0 on, of all requests while no shard is dead; 0 to 1.
func (r Rule) Share(i int) float64 {
	sum := 0.0
	for k := range r.Shards {
		sum += r.weight(k)
	}
	return r.weight(i) / sum
}

func (r Rule) weight(i int) float64 { return math.Pow(float64(i+1), -r.Skew) }

// Balancer is one client's view of the shards. Its methods allocate nothing. Times are on one clock of the
// caller's choice.
type Balancer struct {
	rule   Rule
	weight []float64
	shards []shard
	turn   int
}

// shard is the client's view of one shard.
type shard struct {
	outstanding int
	failed      int // tries in a row
	marked      bool
	until       time.Duration // end of its dead time, if marked
	marks       uint64
	dead        time.Duration // sum of its dead times, up to until
}

// New returns a client that has sent nothing yet. The rule must pass Check.
func New(r Rule) *Balancer {
	b := &Balancer{rule: r, weight: make([]float64, r.Shards), shards: make([]shard, r.Shards), turn: -1}
	for i := range b.weight {
		b.weight[i] = r.weight(i)
	}
	return b
}

// Pick chooses the shard, from 0 on, for a try. key is the request's, with well mixed bits. [Hash] gives the
// same key to the same shard, and while that one is dead to the same other one. If all are dead, Pick treats
// none as dead.
func (b *Balancer) Pick(now time.Duration, key uint64) int {
	all := true
	for i := range b.shards {
		if b.alive(i, now) {
			all = false
			break
		}
	}
	use := func(i int) bool { return all || b.alive(i, now) }
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

// draw chooses by weight among the usable shards, of which there is at least one.
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

// Sent counts an outstanding try.
func (b *Balancer) Sent(i int) { b.shards[i].outstanding++ }

// Ended counts the end of a try: a good answer, or a refusal or timeout.
func (b *Balancer) Ended(now time.Duration, i int, good bool) {
	s := &b.shards[i]
	s.outstanding--
	if good {
		s.failed = 0
		return
	}
	if b.rule.DeadAfter == 0 || !b.alive(i, now) {
		return
	}
	if s.failed++; s.failed < b.rule.DeadAfter {
		return
	}
	s.marked, s.until = true, now+b.rule.DeadFor
	s.marks++
	s.dead += b.rule.DeadFor
	// When the shard is back, one failed try marks it again, until it answers one.
	s.failed = b.rule.DeadAfter - 1
}

// alive reports whether a shard is not marked dead.
func (b *Balancer) alive(i int, now time.Duration) bool {
	s := &b.shards[i]
	return !s.marked || now >= s.until
}

// Marks returns how often a shard was marked dead, and its dead time up to now.
func (b *Balancer) Marks(i int, now time.Duration) (times uint64, dead time.Duration) {
	s := &b.shards[i]
	return s.marks, s.dead - max(0, s.until-now)
}

// Key makes a request's key from its number and the clients' seed.
func Key(seed, number uint64) uint64 { return mix(seed ^ mix(number)) }

// mix spreads the bits of a number: two multiplications folded to 64 bits, with odd constants from the digits
// of pi and e.
func mix(x uint64) uint64 {
	high, low := bits.Mul64(x^0x243f6a8885a308d3, 0xb7e151628aed2a6b)
	high, low = bits.Mul64(high^low^0x13198a2e03707344, 0x9e3779b97f4a7c15)
	return high ^ low
}
