package switchback

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Block is what one block showed.
type Block struct {
	// Round counts from 0. Variant 0 is leaving the container as it is.
	Round   int       `json:"round"`
	Variant int       `json:"variant"`
	Began   time.Time `json:"began"`
	// LogTail is the logarithm of the judged quantile in ms; null: so few requests told none, or the block was cut off.
	LogTail *float64 `json:"log_tail"`
	// Requests is how many came, Slow how many of them took longer than twice the usual judged quantile.
	Requests int `json:"requests"`
	Slow     int `json:"slow_requests"`
}

// State is a switchback under way: what has to survive the process that runs it.
type State struct {
	Plan   Plan      `json:"plan"`
	Began  time.Time `json:"began"`
	Blocks []Block   `json:"blocks"`
	// Out is why a variant is out, by variant; "": it is in.
	Out []string `json:"out"`
	// Used is how long blocks took in all: the bound of time is on that.
	Used time.Duration `json:"used_ns"`
}

// Begin begins a switchback.
func Begin(p Plan, now time.Time) (State, error) {
	if err := p.Check(); err != nil {
		return State{}, err
	}
	return State{Plan: p, Began: now, Out: make([]string, p.Variants+1)}, nil
}

// In are the variants that are still in, leaving it the first.
func (s State) In() (in []int) {
	for v, why := range s.Out {
		if why == "" {
			in = append(in, v)
		}
	}
	return in
}

// Next is the block that comes next. A round that a variant dropped out of goes on without it; one that was interrupted goes on where it
// ended, also in another process.
func (s State) Next() (round, variant int) {
	if n := len(s.Blocks); n > 0 {
		round = s.Blocks[n-1].Round
	}
	for {
		var had []int
		for _, b := range s.Blocks {
			if b.Round == round {
				had = append(had, b.Variant)
			}
		}
		// The order is that of all variants, so that it does not depend on when one dropped out.
		all := make([]int, s.Plan.Variants+1)
		for v := range all {
			all[v] = v
		}
		for _, v := range s.Plan.Order(round, all) {
			if s.Out[v] == "" && !slices.Contains(had, v) {
				return round, v
			}
		}
		round++
	}
}

// Add takes what a block showed, that of Next.
func (s State) Add(b Block, took time.Duration) State {
	s.Blocks, s.Out = append(slices.Clip(s.Blocks), b), slices.Clone(s.Out)
	s.Used += took
	if b.Variant > 0 {
		if why := s.Slow(b.Variant); why != "" {
			s.Out[b.Variant] = why
		} else if worse := of(s.Pairs(b.Variant), 0, -1); worse.Enough(s.Plan.Wrong) {
			s.Out[b.Variant] = fmt.Sprintf("worse than leaving it in %d pairs of blocks", worse.Pairs)
		}
	}
	if next, _ := s.Next(); next > b.Round && (b.Round+1)%halveEvery == 0 {
		s.halve(b.Round + 1)
	}
	return s
}

// halveEvery is the number of rounds after which the better half of the remedies go on alone. Of drawn nights of two hours with
// six remedies, of which one takes a fifth off, 4 finds it in 177 of 300, 3 in 159 and 6 in 147; without halving 7 of 60 find it.
const halveEvery = 4

// halve puts the half of the remedies out that took longer in so many rounds.
func (s State) halve(rounds int) {
	in := s.In()[1:]
	took := map[int]float64{}
	for _, v := range in {
		if took[v] = math.Inf(1); len(s.Pairs(v)) > 0 {
			took[v] = mean(s.Pairs(v))
		}
	}
	slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(took[a], took[b]) })
	for _, v := range in[(len(in)+1)/2:] {
		s.Out[v] = fmt.Sprintf("others took less in %d rounds", rounds)
	}
}

// Pairs are the figures of a variant less those of leaving it, in the rounds that have both.
func (s State) Pairs(variant int) (pairs []float64) {
	left := map[int]float64{}
	for _, b := range s.Blocks {
		if b.Variant == 0 && b.LogTail != nil {
			left[b.Round] = *b.LogTail
		}
	}
	for _, b := range s.Blocks {
		if was, ok := left[b.Round]; ok && b.Variant == variant && b.LogTail != nil {
			pairs = append(pairs, *b.LogTail-was)
		}
	}
	return pairs
}

// Slow requests put a variant out at once: leastSlow of its own at least, more than mostSlow of them and more than slowTimes what leaving
// it has, and slowBlocks of its blocks with more than mostSlow each. Slow requests come in clusters: in an A/A test 39 of 1,863 were slow
// in one block, and 0 of 930 when left alone.
const (
	mostSlow   = 0.02
	leastSlow  = 10
	slowTimes  = 4
	slowBlocks = 2
)

// Counted is how many requests came in some blocks, and how many of them were slow ([Block]).
type Counted struct {
	Requests int `json:"requests"`
	Slow     int `json:"slow_requests"`
}

// Count counts the requests in blocks of the variants that of takes.
func (s State) Count(of func(variant int) bool) (c Counted) {
	for _, b := range s.Blocks {
		if of(b.Variant) {
			c.Requests += b.Requests
			c.Slow += b.Slow
		}
	}
	return c
}

// LeftAlone takes blocks in which the container is left as it is, Remedied all others.
func LeftAlone(variant int) bool { return variant == 0 }

// Remedied takes blocks in which a variant is in force.
func Remedied(variant int) bool { return variant > 0 }

func (c Counted) share() float64 { return float64(c.Slow) / float64(max(1, c.Requests)) }

// Slow says that a variant's requests are slow; "": they are not, or leaving it had not half as many requests yet: in an A/A test a
// variant was put out in the first block of all, compared with nothing.
func (s State) Slow(variant int) string {
	alone, its := s.Count(LeftAlone), s.Count(func(v int) bool { return v == variant })
	if 2*alone.Requests < its.Requests {
		return ""
	}
	if its.Slow < leastSlow || its.share() <= mostSlow || its.share() <= slowTimes*alone.share() {
		return ""
	}
	blocks := 0
	for _, b := range s.Blocks {
		if b.Variant == variant && (Counted{b.Requests, b.Slow}).share() > mostSlow {
			blocks++
		}
	}
	if blocks < slowBlocks {
		return ""
	}
	return fmt.Sprintf("in %d blocks %d of %d requests took longer than twice the usual; %d of %d when left as it is", blocks, its.Slow,
		its.Requests, alone.Slow, alone.Requests)
}

// Answer is what a switchback says.
type Answer string

// Going: it is not decided yet. Keep: a variant is better than leaving it beyond chance. NoneBetter: each variant is out. Undecided: the
// time is over, and nothing was better beyond chance.
const (
	Going      Answer = "going"
	Keep       Answer = "keep"
	NoneBetter Answer = "none better"
	Undecided  Answer = "undecided"
)

// Decision is an answer with its reason.
type Decision struct {
	Answer Answer
	// Variant is to be kept; 0: none.
	Variant int
	Why     string
}

// LeastPairs is how many pairs a variant must have to win: the evidence of fewer is of a single hour.
const LeastPairs = 6

// Decide says what is known by now. It may be asked at any time.
func (s State) Decide() Decision {
	lowest, lowestMean := 0, math.Inf(1)
	best, bestMean := 0, math.Inf(1)
	in := 0
	for _, v := range s.In() {
		if v == 0 {
			continue
		}
		in++
		pairs := s.Pairs(v)
		if len(pairs) == 0 {
			continue
		}
		m := mean(pairs)
		if m < lowestMean {
			lowest, lowestMean = v, m
		}
		if len(pairs) >= LeastPairs && s.Evidence(v).Enough(s.Plan.Wrong/float64(s.Plan.Variants)) && m < bestMean {
			best, bestMean = v, m
		}
	}
	over := s.Used >= s.Plan.Most
	switch {
	case in == 0:
		return Decision{Answer: NoneBetter, Why: "no remedy is left: " + text.EachOnce(s.Out[1:])}
	case best > 0 && (best == lowest || over):
		return Decision{Answer: Keep, Variant: best, Why: s.won(best)}
	case over:
		return Decision{Answer: Undecided, Why: fmt.Sprintf("in %v of blocks nothing was better than leaving it beyond chance",
			s.Used.Round(time.Minute))}
	}
	return Decision{Answer: Going}
}

// Evidence is that a variant is better than leaving it.
func (s State) Evidence(variant int) Evidence { return of(s.Pairs(variant), 0, 1) }

// Gain is the mean of a variant's pairs: the logarithm of how many times as long it takes.
func (s State) Gain(variant int) float64 { return mean(s.Pairs(variant)) }

// won says how a variant won.
func (s State) won(v int) string {
	c := s.Compared(v)
	return fmt.Sprintf("%s, in %d pairs of blocks", c, c.Pairs)
}

// Compared is how many times as long requests take as when the container is left as it is, by the judged quantile.
type Compared struct {
	// Pairs is how many pairs of blocks tell.
	Pairs int `json:"pairs"`
	// Times is the geometric mean; null: there is no pair. Low and High bound it; null: so few pairs do not.
	Times *float64 `json:"times"`
	Low   *float64 `json:"times_low"`
	High  *float64 `json:"times_high"`
}

// Compared compares a variant with leaving the container as it is.
func (s State) Compared(variant int) Compared { return compared(s.Pairs(variant), s.Plan.Wrong) }

func compared(pairs []float64, wrong float64) Compared {
	c := Compared{Pairs: len(pairs)}
	if c.Pairs == 0 {
		return c
	}
	low, high := Interval(pairs, wrong)
	return Compared{c.Pairs, new(math.Exp(mean(pairs))), factor(low), factor(high)}
}

// factor is a bound as a factor; nil: it bounds nothing.
func factor(log float64) *float64 {
	if math.IsInf(log, 0) {
		return nil
	}
	return new(math.Exp(log))
}

// String says it in words.
func (c Compared) String() string {
	bound := func(b *float64) string {
		if b == nil {
			return "not bounded"
		}
		return fmt.Sprintf("%.2f", *b)
	}
	if c.Times == nil {
		return "not measured"
	}
	return fmt.Sprintf("%.2f times what leaving it is (%s to %s)", *c.Times, bound(c.Low), bound(c.High))
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Kept is a variant in force, and what blocks that are left alone say of it since. Promised is the mean of the pairs that it won by.
type Kept struct {
	Plan     Plan    `json:"plan"`
	Promised float64 `json:"promised_log"`
	// Blocks is how many there were since, Pairs those with one that was left alone.
	Blocks int       `json:"blocks"`
	Pairs  []float64 `json:"pairs"`
}

// mostKept bounds the pairs that are kept: the last ones tell whether it still helps.
const mostKept = 400

// Add takes a pair: the figure of the remedy's blocks around one that was left alone, less that one's.
func (k Kept) Add(pair float64) Kept {
	k.Pairs = append(slices.Clip(k.Pairs), pair)
	if n := len(k.Pairs); n > mostKept {
		k.Pairs = slices.Clone(k.Pairs[n-mostKept:])
	}
	return k
}

// Still tells whether it still brings half of what was promised, as far as is known: false only with enough evidence that it does not.
func (k Kept) Still() bool { return !of(k.Pairs, k.Promised/2, -1).Enough(k.Plan.Wrong) }

// Compared compares what is in force with the blocks that were left alone.
func (k Kept) Compared() Compared { return compared(k.Pairs, k.Plan.Wrong) }

// Words are what came of it beside what was promised.
func (k Kept) Words() string {
	if len(k.Pairs) == 0 {
		return fmt.Sprintf("promised %.2f times what leaving it is; no block was left alone yet", math.Exp(k.Promised))
	}
	return fmt.Sprintf("%s in %d blocks, promised %.2f", k.Compared(), len(k.Pairs), math.Exp(k.Promised))
}
