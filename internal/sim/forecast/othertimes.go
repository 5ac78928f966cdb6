package forecast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/stats"
)

// A recording shows one time of many. Work that comes by chance comes otherwise at another time, and the slow responses
// come together: one burst, or one stop, makes many. So how far a high quantile differs from one time to the next is
// measured between parts of the time, and not by the number of slow responses.

const (
	// blocks is into how many parts the recording's time is split. A part of half a second of 6 s has whole bursts with
	// the stops that they cause, so that parts are nearly independent of each other.
	blocks = 12
	// draws is how many other times are drawn from the blocks.
	draws = 400
	// drawSeed is fixed so that every forecast draws the same.
	drawSeed = 0x64726177
	// slowShare is the share of a pool's responses in a run that is kept, the slowest; leastSlow is how many at least.
	// That is enough for quantiles from highQuantile on.
	slowShare    = 0.125
	leastSlow    = 64
	highQuantile = 0.95
	// mostAnswers is how many responses of a run are looked at, because the runs of all remedies are in memory at once. Of more, those
	// of the largest pool are thinned out.
	mostAnswers = 1 << 17
)

// answer is a response or a request of one run: the block of time in which its cause came, and how long it took.
type answer struct {
	block int
	took  time.Duration
}

// keptAnswer is an answer in 8 bytes, because a result keeps very many: the time above the block.
type keptAnswer int64

const blockBits = 8

func (a answer) kept() keptAnswer { return keptAnswer(a.took)<<blockBits | keptAnswer(a.block) }

func (k keptAnswer) answer() answer {
	return answer{int(k & (1<<blockBits - 1)), time.Duration(k >> blockBits)}
}

// slowest are the slowest responses of a pool in one run.
type slowest struct {
	in  [blocks]int  // how many responses came in each block
	all []keptAnswer // the slowest of them, the slowest first
}

// blockAt is the block of a moment since the beginning.
func (l *Load) blockAt(at time.Duration) int {
	if at <= 0 || l.window <= 0 {
		return 0
	}
	return int(min(at, l.window-1) * blocks / l.window)
}

// slowestBy returns a function for simulate.Options.Responses, and one that returns the slowest by pool after the run.
func (l *Load) slowestBy() (add func(workload int, came, took time.Duration), done func() []slowest) {
	samples, pool, left := make([]sample, len(l.Pools)), map[int]int{}, mostAnswers
	for p := range l.Pools {
		for _, w := range l.Pools[p].workloads {
			pool[w] = p
		}
	}
	add = func(workload int, at, took time.Duration) {
		p, ok := pool[workload]
		if !ok || !samples[p].add(answer{l.blockAt(at), took}) {
			return
		}
		if left--; left == 0 {
			largest := 0
			for i := range samples {
				if len(samples[i].answers) > len(samples[largest].answers) {
					largest = i
				}
			}
			left = samples[largest].halve()
		}
	}
	done = func() []slowest {
		slowests := make([]slowest, len(samples))
		for p := range samples {
			slowests[p] = samples[p].slowest()
		}
		return slowests
	}
	return add, done
}

// sample has one in every responses of a pool.
type sample struct {
	answers []answer
	every   int // 0: 1
	skipped int
}

// add tells whether it took the response.
func (s *sample) add(a answer) bool {
	if s.skipped++; s.skipped < s.every {
		return false
	}
	s.skipped = 0
	s.answers = append(s.answers, a)
	return true
}

// halve leaves out every second response, of those to come too, and returns how many it left out.
func (s *sample) halve() int {
	n := len(s.answers)
	for i := range n / 2 {
		s.answers[i] = s.answers[2*i+1]
	}
	s.answers, s.every = s.answers[:n/2], 2*max(1, s.every)
	return n - n/2
}

func (s *sample) slowest() (out slowest) {
	for _, a := range s.answers {
		out.in[a.block]++
	}
	slowestFirst(s.answers)
	keep := max(leastSlow, int(math.Ceil(slowShare*float64(len(s.answers)))))
	kept := s.answers[:min(keep, len(s.answers))]
	out.all = make([]keptAnswer, 0, len(kept)) // append would reserve more
	for _, a := range kept {
		out.all = append(out.all, a.kept())
	}
	return out
}

func slowestFirst(answers []answer) {
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.block, b.block)) })
}

// otherTimesOf is otherTimes of the responses of the pools of that name over several runs; nil: there are none, the
// quantile is too low for those that were kept, or the name is that of all pools.
func (l *Load) otherTimesOf(results []result, pool string, q float64) *Range {
	return rangeOfDraws(l.drawnOf(results, pool, q))
}

// drawnOf is drawn of the responses of otherTimesOf.
func (l *Load) drawnOf(results []result, pool string, q float64) []float64 {
	if q < highQuantile || pool == "" {
		return nil
	}
	in := make([]int, len(results)*blocks)
	var answers []answer
	for i := range results {
		for p, of := range results[i].slowest {
			if l.Pools[p].Name != pool {
				continue
			}
			for b, n := range of.in {
				in[i*blocks+b] += n
			}
			for _, k := range of.all {
				a := k.answer()
				answers = append(answers, answer{i*blocks + a.block, a.took})
			}
		}
	}
	slowestFirst(answers)
	return drawn(in, answers, q)
}

// otherTimes is the range of a quantile in Coverage of other times of the same length. in is how many responses came in
// each block of each run, slow are the slowest of them, the slowest first. Each draw is one other time: any run, whose phase
// of the quota's period lasts, and as many of its blocks as it has, with replacement (a block bootstrap: Künsch, Annals of
// Statistics 17(3), 1989). nil: there are no responses.
//
// Worked example: 12 blocks of 50 requests each; in one of them a burst makes 20 requests take 300 ms, the others take
// 20 ms. p99 is 300 ms. About a third of the draws lacks that block, and the range is from 20 to 300 ms.
func otherTimes(in []int, slow []answer, q float64) *Range { return rangeOfDraws(drawn(in, slow, q)) }

// drawn has the quantile in milliseconds of each draw of otherTimes; NaN: the draw has no responses. Two settings of one
// recording have the same draws, so that they can be compared draw by draw. nil: there are no responses.
func drawn(in []int, slow []answer, q float64) []float64 {
	if len(slow) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(drawSeed, 0))
	values := make([]float64, 0, draws)
	times := make([]int, len(in))
	for range draws {
		clear(times)
		total, run := 0, rng.IntN(len(in)/blocks)
		for range blocks {
			b := run*blocks + rng.IntN(blocks)
			times[b]++
			total += in[b]
		}
		if total == 0 {
			values = append(values, math.NaN())
			continue
		}
		value := slow[len(slow)-1].took
		above := total - stats.RankOf(total, q) // so many of the draw lie above the quantile
		for _, a := range slow {
			if above -= times[a.block]; above < 0 {
				value = a.took
				break
			}
		}
		values = append(values, milliseconds(value))
	}
	return values
}

// rangeOfDraws is the range of Coverage of the draws; nil: there are none.
func rangeOfDraws(values []float64) *Range {
	values = slices.DeleteFunc(values, math.IsNaN)
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	low := int((1 - Coverage) / 2 * float64(len(values)))
	return &Range{values[low], values[len(values)-1-low]}
}
