package switchback

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan is how a switchback goes. It never changes while one is under way.
type Plan struct {
	// Variants is how many there are beside leaving it, which is variant 0.
	Variants int `json:"variants"`
	// Block is how long each is in force at a time.
	Block time.Duration `json:"block_ns"`
	// Most is how long it may take until it must be decided; what was in force is left out of it where nothing may be changed.
	Most time.Duration `json:"most_ns"`
	// Wrong is the probability of keeping a variant that changes nothing, over all variants and all looks.
	Wrong float64 `json:"wrong"`
	// Seed is what the orders are drawn from.
	Seed uint64 `json:"seed"`
}

// The bounds of a plan.
const (
	LeastBlock   = 20 * time.Second
	LongestBlock = time.Hour
	LongestMost  = 7 * 24 * time.Hour
	MostVariants = 16
)

// Check says what is wrong with a plan; nil: nothing.
func (p Plan) Check() error {
	switch {
	case p.Variants < 1 || p.Variants > MostVariants:
		return fmt.Errorf("%d variants: a switchback has 1 to %d beside leaving it", p.Variants, MostVariants)
	case p.Block < LeastBlock || p.Block > LongestBlock:
		return fmt.Errorf("blocks of %v: a block takes %v to %v", p.Block, LeastBlock, LongestBlock)
	case p.Most < p.Block*time.Duration(2*(1+p.Variants)) || p.Most > LongestMost:
		return fmt.Errorf("at most %v: a switchback of %d variants takes two rounds of blocks of %v at least, and %v at most", p.Most,
			p.Variants, p.Block, LongestMost)
	case !(p.Wrong > 0 && p.Wrong <= 0.5):
		return fmt.Errorf("wrong with a probability of %v: give one above 0, up to 0.5", p.Wrong)
	}
	return nil
}

// Order is the order of a round's variants, drawn anew for each round: the same for the same round, whoever asks.
func (p Plan) Order(round int, in []int) []int {
	order := slices.Clone(in)
	chance := rand.New(rand.NewPCG(p.Seed, uint64(round)))
	chance.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// holdbackOf is one block in how many that is left alone once a variant is kept.
const holdbackOf = 20

// Holdback tells which block of twenty is left alone, drawn for each twenty.
func (p Plan) Holdback(block int) bool {
	chance := rand.New(rand.NewPCG(p.Seed^1<<63, uint64(block/holdbackOf)))
	return chance.IntN(holdbackOf) == block%holdbackOf
}
