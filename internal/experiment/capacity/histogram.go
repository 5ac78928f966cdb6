package capacity

import (
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// perOctave is how many bins a doubling of the latency has.
const perOctave = 2

// histogram puts fine bins into coarse ones whose edges grow by a constant
// factor from 0.125 ms on: the same edges for every variant and point.
func histogram(fine []loadgen.Bin) []Bin {
	var bins []Bin
	for _, f := range fine {
		// The middle decides: a fine bin is a thousand times narrower than a coarse one.
		i := slot((f.From + f.To) / 2)
		for len(bins) <= i {
			n := len(bins)
			bins = append(bins, Bin{FromMs: edge(n), ToMs: edge(n + 1)})
		}
		bins[i].Count += f.Count
	}
	if bins == nil {
		return []Bin{}
	}
	return bins
}

// edge is where the i-th bin begins, in ms; the first begins at 0.
func edge(i int) float64 {
	if i == 0 {
		return 0
	}
	return round3(0.125 * math.Pow(2, float64(i-1)/perOctave))
}

func slot(d time.Duration) int {
	at := millis(d)
	if at < edge(1) {
		return 0
	}
	i := 1 + int(perOctave*math.Log2(at/0.125))
	for at >= edge(i+1) {
		i++
	}
	for at < edge(i) {
		i--
	}
	return i
}
