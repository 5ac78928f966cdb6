package trial

import (
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/stats"
)

const (
	// leastScatter is by how much turns of one variant differ at least, as a logarithm: less is luck.
	leastScatter = 0.02
	// mostOfWork is how likely chance alone makes a figure of the work look as if it explained a latency, where it is taken into account.
	mostOfWork = 0.005
	// leastFreedom is how many turns beyond one of each variant the work needs to be taken into account.
	leastFreedom = 4
	// movedByVariants is from which ratio of the scatter between variants to that within them on a figure of the work depends on the
	// variant, so that it is none: a client that waits for its answers sends more where they come sooner.
	movedByVariants = 3
)

// fitted is what turns say of each variant: the mean of a logarithm, and how far turns of one variant differ by themselves.
//
// A turn is one sample, however many requests it has: a compaction, a neighbour or a deploy that meets a turn meets many of its requests
// together. All turns, also of variants that are out, tell how far turns differ. What differs because other work came is taken out: the
// figure of the turns' work that explains most of it, by a line (analysis of covariance).
type fitted struct {
	mean    []float64 // by variant, at the mean of the work; NaN: no turn counts
	turns   []int     // that count, by variant
	scatter float64   // between turns of one variant
	freedom int       // of scatter; 0: it is not known
	// work is what the variants' turns had of the figure that was taken out, and of how much of it in all; nil: none was.
	work    []float64
	squares float64
}

// fit fits values, logarithms by variant and turn (NaN: it does not count), and what is known of the work of each turn: figures in one
// order.
func fit(values [][]float64, work [][][]float64) fitted {
	f := fitted{mean: make([]float64, len(values)), turns: make([]int, len(values))}
	figures := math.MaxInt
	for v := range values {
		for i, y := range values[v] {
			if !math.IsNaN(y) {
				f.turns[v]++
				figures = min(figures, len(work[v][i]))
			}
		}
		if f.turns[v] > 0 {
			f.freedom += f.turns[v] - 1
		}
	}
	left := products(values, values, values, f.mean)
	if f.freedom == 0 {
		return f
	}
	var most, slope float64
	if figures == math.MaxInt || f.freedom < leastFreedom {
		figures = 0
	}
	for figure := range figures {
		x := make([][]float64, len(work))
		for v := range work {
			for i := range work[v] {
				x[v] = append(x[v], math.NaN())
				if figure < len(work[v][i]) {
					x[v][i] = work[v][i][figure]
				}
			}
		}
		means := make([]float64, len(values))
		squares := products(x, x, values, means)
		if squares <= 0 || f.apart(means) > movedByVariants*squares/float64(f.freedom) {
			continue
		}
		both := products(x, values, values, make([]float64, len(values)))
		if taken := both * both / squares; taken > most {
			most, slope, f.work, f.squares = taken, both/squares, means, squares
		}
	}
	if t := stats.StudentT(1-mostOfWork/2, max(1, f.freedom-1)); most > t*t*max(0, left-most)/float64(f.freedom-1) {
		left, f.freedom = left-most, f.freedom-1
		middle := f.middle(f.work)
		for v := range f.mean {
			f.mean[v] -= slope * (f.work[v] - middle)
		}
	} else {
		f.work = nil
	}
	f.scatter = max(leastScatter, math.Sqrt(max(0, left)/float64(f.freedom)))
	return f
}

// products sums the products of what a and b differ from their means over the turns of each variant that count, and puts
// the means of a into means.
func products(a, b, counts [][]float64, means []float64) (sum float64) {
	for v := range counts {
		var as, bs []float64
		for i, y := range counts[v] {
			if !math.IsNaN(y) {
				as, bs = append(as, a[v][i]), append(bs, b[v][i])
			}
		}
		means[v] = math.NaN()
		if len(as) == 0 {
			continue
		}
		am, bm := mean(as), mean(bs)
		means[v] = am
		for i := range as {
			sum += (as[i] - am) * (bs[i] - bm)
		}
	}
	return sum
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// middle is the mean over all turns of what variants have on average.
func (f fitted) middle(of []float64) (m float64) {
	turns := 0
	for v, n := range f.turns {
		if n > 0 {
			m, turns = m+of[v]*float64(n), turns+n
		}
	}
	return m / float64(turns)
}

// apart is the variance between variants of what they have on average, by turn.
func (f fitted) apart(of []float64) (variance float64) {
	middle, variants := f.middle(of), -1
	for v, n := range f.turns {
		if n > 0 {
			variance += float64(n) * (of[v] - middle) * (of[v] - middle)
			variants++
		}
	}
	return variance / float64(max(1, variants))
}

// at is the mean of a variant; infinite: no turn counts.
func (f fitted) at(v int) float64 {
	if f.turns[v] == 0 {
		return math.Inf(1)
	}
	return f.mean[v]
}

// ratio is how many times as long as another variant a variant takes, and between which factors that lies: in so many cases (level) it
// is above high, and in as many below low. false: too few turns count to tell.
func (f fitted) ratio(v, other int, level float64) (value, low, high float64, ok bool) {
	if f.turns[v] == 0 || f.turns[other] == 0 || f.freedom == 0 {
		return 0, 0, 0, false
	}
	by, half := f.mean[v]-f.mean[other], stats.StudentT(1-level, f.freedom)*f.error(v, other)
	return math.Exp(by), math.Exp(by - half), math.Exp(by + half), true
}

// error is the standard deviation of the difference of two variants.
func (f fitted) error(v, other int) float64 {
	of := 1/float64(f.turns[v]) + 1/float64(f.turns[other])
	if f.work != nil {
		of += (f.work[v] - f.work[other]) * (f.work[v] - f.work[other]) / f.squares
	}
	return f.scatter * math.Sqrt(of)
}

// tinyMs is added to latencies, so that 0 has a logarithm.
const tinyMs = 1e-3

// fit fits a figure of each turn, as a logarithm.
func (t *Trial) fit(of func(turn) float64) fitted {
	values, work := make([][]float64, len(t.turns)), make([][][]float64, len(t.turns))
	for v, turns := range t.turns {
		for _, m := range turns {
			values[v] = append(values[v], of(m))
			figures := []float64{float64(len(m.Judged.TookMs)) / max(1e-3, m.Judged.Window.Seconds()), m.Judged.CPUs}
			work[v] = append(work[v], append(figures, m.Work...))
		}
	}
	return fit(values, work)
}

func tail(m turn) float64 { return m.tail }

func half(m turn) float64 { return m.half }

// kindOf is a quantile of a turn's requests of another kind.
func kindOf(kind int, q float64) func(turn) float64 {
	return func(m turn) float64 {
		if kind >= len(m.Others) || len(m.Others[kind].TookMs) < leastOfRound {
			return math.NaN()
		}
		return math.Log(stats.Rank(slices.Sorted(slices.Values(m.Others[kind].TookMs)), q) + tinyMs)
	}
}

// parts is into how many parts a turn is cut where no other one is there to compare with: what lasts for a part of it is no property of
// the variant. leastOfPart is how many requests a part needs.
const parts, leastOfPart = 3, 7

// inEachPart reports whether in each part of its only turn a variant took as many times as long, at least, as another one in any.
func (t *Trial) inEachPart(v, other int, factor float64) bool {
	is, was := t.byPart(t.pooled(v)), t.byPart(t.pooled(other))
	return len(is) == parts && len(was) == parts && slices.Min(is) >= factor*slices.Max(was)
}

// byPart are the judged quantiles of the parts of requests; fewer than parts: one has too few.
func (t *Trial) byPart(r verdict.Requests) (all []float64) {
	cut := make([][]float64, parts)
	for i, began := range r.BeganMs {
		part := min(parts-1, int(parts*began/max(1, float64(r.Window.Milliseconds()))))
		cut[max(0, part)] = append(cut[max(0, part)], r.TookMs[i])
	}
	for _, ms := range cut {
		if len(ms) >= leastOfPart {
			all = append(all, stats.Rank(slices.Sorted(slices.Values(ms)), t.quantile))
		}
	}
	return all
}
