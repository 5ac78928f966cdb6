package verdict

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// quotaWork is a service on two CPUs with a quota: batches of work arrive at random, of 5 to 44 parts, and each is done by
// some threads at once.
type quotaWork struct {
	// batches is how many arrive per second, limit the CPUs of the quota in periods of 100 ms, burst what may be saved up
	// as a multiple of the quota.
	batches, limit, burst float64
	// partMs is the CPU time of a part, threads is how many share a batch.
	partMs  float64
	threads int
}

// runs are those of so long a time, worked off in steps of a millisecond.
func (q quotaWork) runs(r *rand.Rand, window time.Duration) Runs {
	of := Runs{Window: window}
	type job struct{ at, left, cpu float64 }
	var queue []job
	quota := q.limit * 100
	left, next := quota, r.ExpFloat64()*1000/q.batches
	for now := 0.0; now < float64(window.Milliseconds()); now++ {
		if math.Mod(now, 100) == 0 {
			left = min(left+quota, quota*(1+q.burst))
		}
		for ; next <= now; next += r.ExpFloat64() * 1000 / q.batches {
			cpu := float64(5+r.IntN(40)) * q.partMs / float64(q.threads)
			for range q.threads {
				queue = append(queue, job{next, cpu, cpu})
			}
		}
		can, waiting := min(2, left), queue[:0]
		for _, j := range queue {
			done := min(1, can, j.left)
			j.left, can, left = j.left-done, can-done, left-done
			if j.left > 1e-9 {
				waiting = append(waiting, j)
				continue
			}
			of.WokenMs, of.ResponseMs, of.CPUMs = append(of.WokenMs, j.at), append(of.ResponseMs, now+1-j.at), append(of.CPUMs, j.cpu)
		}
		queue = waiting
	}
	return of
}

// A burst for batches of different size is found from 20 s on each side, where quantiles and the longest of few backlogs find it
// in one or two cases of five. The draws are fixed, so that the shares are.
func TestBurstsForFewBacklogsAreFound(t *testing.T) {
	const rounds = 40
	for _, batches := range []float64{2, 3.5} {
		plain := quotaWork{batches: batches, limit: 0.6, partMs: 4, threads: 2}
		burst := plain
		burst.burst = 1
		var found, byTails, alike, worse int
		for i := range uint64(rounds) {
			r := rand.New(rand.NewPCG(i, 9))
			before := plain.runs(r, 20*time.Second)
			cured, again := burst.runs(r, 20*time.Second), plain.runs(r, 20*time.Second)
			j := JudgeRuns(Evidence{}, 0.99, before, cured)
			if j.Verdict == Better {
				found++
			}
			longest := longestBlockMs(before, cured)
			was, is := before.blocks(false, longest), cured.blocks(false, longest)
			if movedByBlocks(was, is, j.Quantile, worthwhileRuns, ofBlocks) < 0 ||
				tails(was.longest(), is.longest(), worthwhileRuns, ofBlocks) < 0 {
				byTails++
			}
			switch JudgeRuns(Evidence{}, 0.99, before, again).Verdict {
			case Better:
				alike++
			case Worse:
				worse++
			}
		}
		t.Logf("%v batches per second: better in %d of %d with a burst, %d by tails alone; without a change better in %d, worse in %d",
			batches, found, rounds, byTails, alike, worse)
		if found < rounds*6/10 || byTails*3/2 > found || alike > rounds/10 {
			t.Errorf("%v batches per second: better in %d of %d with a burst, %d by tails alone; without a change better in %d",
				batches, found, rounds, byTails, alike)
		}
	}
}

// A tail that grows is not better, however much faster most of the work became.
func TestAFasterMostDoesNotHideATail(t *testing.T) {
	work := func(most, tail float64) Runs {
		r := Runs{Window: 20 * time.Second}
		for i := range 200 {
			took := most
			if i%10 == 9 {
				took = tail
			}
			r.WokenMs, r.CPUMs, r.ResponseMs = append(r.WokenMs, float64(i)*100), append(r.CPUMs, 1),
				append(r.ResponseMs, took+float64(i%7)/10)
		}
		return r
	}
	if j := JudgeRuns(Evidence{}, 0.95, work(10, 60), work(3, 61)); j.Verdict == Better {
		t.Error(j.Why)
	}
	if j := JudgeRuns(Evidence{}, 0.95, work(10, 60), work(3, 40)); j.Verdict != Better {
		t.Errorf("%s: %s", j.Verdict, j.Why)
	}
}
