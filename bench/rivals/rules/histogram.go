package rules

import (
	"math"
	"time"
)

// buckets are the bounds of a histogram; values beyond the last one count in it.
type buckets interface {
	count() int
	of(value float64) int
	start(bucket int) float64
}

// growing are buckets of which each is wider than the one before by the same factor.
type growing struct {
	first, ratio float64
	n            int
}

// newGrowing has as many buckets as it takes for the last one to start at most or beyond.
func newGrowing(most, first, ratio float64) growing {
	return growing{first, ratio, int(math.Ceil(math.Log(most*(ratio-1)/first+1)/math.Log(ratio))) + 1}
}

func (g growing) count() int { return g.n }

func (g growing) of(value float64) int {
	if value < g.first {
		return 0
	}
	return min(int(math.Log(value*(g.ratio-1)/g.first+1)/math.Log(g.ratio)), g.n-1)
}

func (g growing) start(bucket int) float64 {
	return g.first * (math.Pow(g.ratio, float64(bucket)) - 1) / (g.ratio - 1)
}

// mostHalvings is for how many half-lives weights are counted from the same time; then the numbers become too large.
const mostHalvings = 100

// decaying is a histogram in which a sample weighs half as much after each half-life.
type decaying struct {
	in       buckets
	weights  []float64
	total    float64
	halfLife time.Duration
	from     time.Duration // a sample of this time weighs what it was added with
	begun    bool
	least    float64 // a bucket with less weight counts as empty where the first and the last one are looked for
}

func newDecaying(in buckets, halfLife time.Duration, least float64) *decaying {
	return &decaying{in: in, weights: make([]float64, in.count()), halfLife: halfLife, least: least}
}

// add adds a sample. Times are counted from a multiple of the half-life, which moves after mostHalvings.
func (d *decaying) add(value, weight float64, at time.Duration) {
	if to := at.Round(d.halfLife); !d.begun {
		d.from, d.begun = to, true
	} else if at > d.from+mostHalvings*d.halfLife {
		factor := math.Ldexp(1, int(math.Round(float64(d.from-to)/float64(d.halfLife))))
		for i := range d.weights {
			d.weights[i] *= factor
		}
		d.total *= factor
		d.from = to
	}
	weight *= math.Exp2(float64(at-d.from) / float64(d.halfLife))
	d.weights[d.in.of(value)] += weight
	d.total += weight
}

// percentile is the end of the bucket in which the share q of all weight is reached, or the start of the last bucket, which
// has no end; 0: the histogram is empty.
func (d *decaying) percentile(q float64) float64 {
	first, last := -1, -1
	for i, w := range d.weights {
		if w < d.least {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first < 0 {
		return 0
	}
	at, sum := first, 0.0
	for ; at < last; at++ {
		if sum += d.weights[at]; sum >= q*d.total {
			break
		}
	}
	return d.in.start(min(at+1, d.in.count()-1))
}
