package switchback

import "math"

// Evidence is what a stake of 1 has become that bets on pairs to be below 0.
type Evidence struct {
	// Log is the logarithm of the stake.
	Log float64
	// Pairs is how many there were; sizes, sum and squares are what the next bet is made of.
	Pairs   int
	Size    float64 // mean size of pairs
	Sum     float64 // of what was bet on
	Squares float64
}

const (
	// firstBet is the part of the stake that the first bet is, before anything is known; mostBet is never bet more than.
	firstBet, mostBet = 0.3, 0.8
	// known is how many pairs what is known before the first one counts as.
	known = 2.0
)

// bet is the part of the stake that is bet on the next pair: what would have made most of it so far (Waudby-Smith and Ramdas 2024,
// appendix B.3), never against it.
func (e Evidence) bet() float64 {
	mean := (e.Sum + known*firstBet) / (float64(e.Pairs) + known)
	square := (e.Squares + known) / (float64(e.Pairs) + known)
	return max(0, min(mean/square, mostBet))
}

// Add bets on a pair. Its size counts by how it compares with those before it, so that one wild pair neither wins nor loses more than a
// bet. Nothing that is not known before the pair decides how much is bet, which is what makes the stake evidence.
func (e Evidence) Add(pair float64) Evidence {
	size := e.Size
	if e.Pairs == 0 {
		size = math.Abs(pair) // a first pair of any size counts by its sign
	}
	won := 0.0
	if size > 0 {
		won = -math.Tanh(pair / size)
	} else if pair != 0 {
		won = -math.Copysign(1, pair)
	}
	e.Log += math.Log1p(e.bet() * won)
	e.Sum, e.Squares = e.Sum+won, e.Squares+won*won
	e.Size = (e.Size*float64(e.Pairs) + math.Abs(pair)) / float64(e.Pairs+1)
	e.Pairs++
	return e
}

// Enough tells whether the stake has become 1/wrong.
func (e Evidence) Enough(wrong float64) bool { return e.Log >= -math.Log(wrong) }

// of is the evidence of pairs, moved by some amount, and with the sign turned where it is -1.
func of(pairs []float64, moved, sign float64) (e Evidence) {
	for _, p := range pairs {
		e = e.Add(sign * (p - moved))
	}
	return e
}

// Interval holds the mean of pairs but with a probability of wrong, at whatever time one looks: what neither side has evidence against.
// Without evidence against anything it has no bounds.
func Interval(pairs []float64, wrong float64) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if len(pairs) == 0 {
		return low, high
	}
	middle, most := mean(pairs), 0.0
	for _, p := range pairs {
		most = max(most, math.Abs(p-middle))
	}
	against := func(at, sign float64) bool { return of(pairs, at, sign).Enough(wrong / 2) }
	edge := func(sign float64) float64 { // the nearest point to the mean that there is evidence against, by halving
		far := middle + sign*max(10*most, 1)
		if !against(far, sign) {
			return sign * math.Inf(1)
		}
		near := middle
		for range 60 {
			if at := (near + far) / 2; against(at, sign) {
				far = at
			} else {
				near = at
			}
		}
		return far
	}
	return edge(-1), edge(1)
}
