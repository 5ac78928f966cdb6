package study

import (
	"iter"
	"slices"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// Turns yields rounds from 1 and variants from 0. Each round has all n variants and begins with another than the one before
// it, where there are two or more. The beginnings of few rounds are spread over the variants.
func Turns(rounds, n int) iter.Seq2[int, int] {
	return func(yield func(round, variant int) bool) {
		for round := range rounds {
			first := round
			if n > rounds {
				first = round * n / rounds
			}
			for i := range n {
				if !yield(round+1, (first+i)%n) {
					return
				}
			}
		}
	}
}

// Spread is what the rounds of a variant measured.
type Spread struct {
	Median, Low, High float64
	Rounds            int
}

// SpreadOf is the spread of values; Rounds is 0 where there is none.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	return Spread{stats.Median(values), slices.Min(values), slices.Max(values), len(values)}
}
