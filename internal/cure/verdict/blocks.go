package verdict

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/unthrottle/unthrottle/internal/stats"
)

const (
	// leastWaitMs is the shortest wait that makes a backlog: a thread that gets its CPU at once waits less.
	leastWaitMs = 0.1
	// A backlog that does not end within endlessShare of the recording is cut into blocks as long as blockResponses of the
	// longest responses, and at least as long as leastBlockMs, or as the leastBlocks-th part of a short recording: three
	// blocks on each side can show nothing. A shorter one stays whole, because its parts are slow together.
	endlessShare                              = 0.5
	leastBlockMs, blockResponses, leastBlocks = 1000, 4, 5
	// exactOrders is up to how many assignments of blocks to sides are all looked at; of more, drawnOrders are drawn.
	exactOrders, drawnOrders = 2000, 999
	// resamples is how often blocks are drawn for the interval of a quantile.
	resamples = 400
)

// blocks are the samples of one side in groups that do not depend on each other.
type blocks struct {
	values []float64
	// of is the block of each value, from 0 to count-1.
	of    []int
	count int
	// responseMs is the longest response of each block, cpuMs the CPU time of its runs.
	responseMs, cpuMs []float64
}

// run is a value of a run that was woken at a time and then waited, with its response and its CPU time, in ms.
type run struct{ woken, wait, value, response, cpu float64 }

// begin begins another block.
func (b *blocks) begin() {
	b.count++
	b.responseMs, b.cpuMs = append(b.responseMs, 0), append(b.cpuMs, 0)
}

// add adds a run to the last block.
func (b *blocks) add(r run) {
	i := b.count - 1
	b.values, b.of = append(b.values, r.value), append(b.of, i)
	b.responseMs[i] = max(b.responseMs[i], r.response)
	b.cpuMs[i] += r.cpu
}

// blocksOf groups runs by backlog: a run belongs to the block of the run before it if it was woken while that one or an
// earlier one of the block still waited. A backlog that lasts for more than endlessMs is cut into blocks of longestMs.
func blocksOf(runs []run, endlessMs, longestMs float64) blocks {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.woken, b.woken) })
	var b blocks
	for len(runs) > 0 {
		n := backlog(runs)
		began, endless := runs[0].woken, runs[n-1].woken-runs[0].woken > endlessMs
		b.begin()
		for _, r := range runs[:n] {
			if endless && r.woken >= began+longestMs {
				began = r.woken
				b.begin()
			}
			b.add(r)
		}
		runs = runs[n:]
	}
	return b
}

// backlog is how many of the first runs, in the order in which they were woken, are in one backlog.
func backlog(runs []run) int {
	waits := math.Inf(-1)
	for i, r := range runs {
		if i > 0 && r.woken >= waits {
			return i
		}
		if r.wait >= leastWaitMs {
			waits = max(waits, r.woken+r.wait)
		}
	}
	return len(runs)
}

// longest are the longest values of each block.
func (b blocks) longest() []float64 {
	all := make([]float64, b.count)
	for i := range all {
		all[i] = math.Inf(-1)
	}
	for i, v := range b.values {
		all[b.of[i]] = max(all[b.of[i]], v)
	}
	return all
}

// ranked is a value with its block, among the blocks of both sides.
type ranked struct {
	value float64
	block int
}

// descending are the values of both sides, the largest first. The blocks of after come after those of before.
func descending(before, after blocks) []ranked {
	ranking := make([]ranked, 0, len(before.values)+len(after.values))
	for i, v := range before.values {
		ranking = append(ranking, ranked{v, before.of[i]})
	}
	for i, v := range after.values {
		ranking = append(ranking, ranked{v, before.count + after.of[i]})
	}
	slices.SortFunc(ranking, func(a, b ranked) int { return cmp.Compare(b.value, a.value) })
	return ranking
}

// fromLargest is how many of n values lie above their nearest-rank quantile.
func fromLargest(n int, q float64) int { return n - stats.RankOf(n, q) }

// quantiles are the nearest-rank quantiles of both sides, where isAfter says which blocks are of the second.
func quantiles(ranking []ranked, isAfter []bool, q float64) (before, after float64) {
	var n, at [2]int
	side := func(r ranked) int {
		if isAfter[r.block] {
			return 1
		}
		return 0
	}
	for _, r := range ranking {
		n[side(r)]++
	}
	var found [2]float64
	for s := range n {
		at[s] = fromLargest(n[s], q)
	}
	for _, r := range ranking {
		s := side(r)
		if at[s] == 0 {
			found[s] = r.value
		}
		if at[s]--; at[0] < 0 && at[1] < 0 {
			break
		}
	}
	return found[0], found[1]
}

// levels are how likely a verdict of one test is where nothing changed.
type levels struct{ worse, better float64 }

// of is the level of a direction: 1 is worse.
func (l levels) of(direction int) float64 {
	if direction > 0 {
		return l.worse
	}
	return l.better
}

// sides says which blocks are of the second side, as they were seen.
func sides(before, after blocks) []bool {
	isAfter := make([]bool, before.count+after.count)
	for i := before.count; i < len(isAfter); i++ {
		isAfter[i] = true
	}
	return isAfter
}

// movedByBlocks is 1 where a quantile became larger by more than least, -1 smaller, 0 the same, by a permutation test:
// if both sides were alike, each assignment of the blocks to the sides would be as likely as the one that was seen.
func movedByBlocks(before, after blocks, q, least float64, at levels) int {
	ranking, isAfter := descending(before, after), sides(before, after)
	was, is := quantiles(ranking, isAfter, q)
	if was == is || math.Abs(is-was) < least*was {
		return 0
	}
	direction, seen := 1, apartBy(was, is)
	if seen < 0 {
		direction, seen = -1, -seen
	}
	asFar := func(order []bool) bool {
		was, is := quantiles(ranking, order, q)
		return float64(direction)*apartBy(was, is) >= seen
	}
	if chanceOfOrders(isAfter, after.count, asFar) > at.of(direction) {
		return 0
	}
	return direction
}

// slowness is, of each block, the logarithm of its longest response as a multiple of its CPU time: a backlog of much work
// takes long by itself.
func (b blocks) slowness() []float64 {
	const tinyMs = 1e-3 // so that no CPU time has a logarithm
	all := make([]float64, b.count)
	for i := range all {
		all[i] = apartBy(b.cpuMs[i]+tinyMs, b.responseMs[i]+tinyMs)
	}
	return all
}

// fasterByBlocks is the factor by which the slowness of a backlog fell, as a geometric mean, and whether chance would do it in
// at most level of all cases, by the permutations of movedByBlocks. A fall by less than least does not count, nor one
// where neither the quantile of the values nor that of the slowness fell: a tail may grow while most backlogs become faster.
func fasterByBlocks(before, after blocks, q, least, level float64) (factor float64, faster bool) {
	was, is := before.slowness(), after.slowness()
	all, isAfter := slices.Concat(was, is), sides(before, after)
	tail := func(of []float64) float64 { return stats.Rank(slices.Sorted(slices.Values(of)), q) }
	fell := func(order []bool) float64 {
		var sum, n [2]float64
		for i, v := range all {
			side := 0
			if order[i] {
				side = 1
			}
			sum[side] += v
			n[side]++
		}
		return sum[0]/n[0] - sum[1]/n[1]
	}
	seen := fell(isAfter)
	factor = math.Exp(-seen)
	if factor > 1-least || tail(is) >= tail(was) && tail(after.values) >= tail(before.values) {
		return factor, false
	}
	return factor, chanceOfOrders(isAfter, after.count, func(order []bool) bool { return fell(order) >= seen }) <= level
}

// apartBy is the logarithm of the factor between two values, above 0 where the second is larger.
func apartBy(was, is float64) float64 {
	const tiny = 1e-9 // so that 0 has a logarithm
	return math.Log(is+tiny) - math.Log(was+tiny)
}

// chanceOfOrders is the share of the assignments of blocks to sides, of which so many are of the second, that pass. Few
// assignments are all looked at. Of many some are drawn, always the same, and the one that was seen counts as one more.
func chanceOfOrders(seen []bool, second int, pass func([]bool) bool) float64 {
	order, passed := slices.Clone(seen), 0
	if n := binomial(len(seen), second); n <= exactOrders {
		each(order, 0, second, func() {
			if pass(order) {
				passed++
			}
		})
		return float64(passed) / n
	}
	draw := rand.New(rand.NewPCG(1, uint64(len(seen))))
	for range drawnOrders {
		draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if pass(order) {
			passed++
		}
	}
	return float64(1+passed) / (1 + drawnOrders)
}

// each visits all ways to mark so many places from a place on.
func each(order []bool, from, marks int, visit func()) {
	if from == len(order) {
		visit()
		return
	}
	if marks > 0 {
		order[from] = true
		each(order, from+1, marks-1, visit)
	}
	if len(order)-from > marks {
		order[from] = false
		each(order, from+1, marks, visit)
	}
}

// binomial is n over k.
func binomial(n, k int) float64 {
	ways := 1.0
	for i := range min(k, n-k) {
		ways *= float64(n-i) / float64(i+1)
	}
	return math.Round(ways)
}

// spread is Quantile of dependent samples: the interval is that of blocks that are drawn again and again. A single block
// tells no interval: it is then from the shortest to the longest.
func (b blocks) spread(q float64) (Spread, bool) {
	s, ok := Quantile(b.values, q)
	if !ok {
		return s, false
	}
	if b.count < 2 {
		s.Low, s.High = slices.Min(b.values), s.Longest
		return s, true
	}
	ranking, sizes := descending(b, blocks{}), make([]int, b.count)
	for _, block := range b.of {
		sizes[block]++
	}
	draw, drawn := rand.New(rand.NewPCG(2, uint64(b.count))), make([]float64, resamples)
	for i := range drawn {
		times, n := make([]int, b.count), 0
		for range b.count {
			block := draw.IntN(b.count)
			times[block]++
			n += sizes[block]
		}
		left := fromLargest(n, q)
		for _, r := range ranking {
			if left -= times[r.block]; left < 0 {
				drawn[i] = r.value
				break
			}
		}
	}
	slices.Sort(drawn)
	s.Low = min(s.Value, drawn[int(0.025*resamples)])
	s.High = max(s.Value, drawn[int(0.975*resamples)])
	return s, true
}
