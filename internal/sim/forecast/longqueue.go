package forecast

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

// What a burst or a credit has saved lets little more than the used CPUs suffice, until a busy time comes that spends it: then
// the queue stays for as long as it takes to work it off with the little that is left over. A recording of 10 s may have none
// of these, and another 10 s has another mean load. So what came in each moment is drawn anew, part by part, to a time that is
// long, and flows through the bucket: far coarser than a replay, and compared with what flows so through the limit as recorded.

const (
	// moment is the time in which what comes is added up.
	moment = 10 * time.Millisecond
	// longParts is how many of the recording's parts, 12 to each, make the long time: 20 of its lengths.
	longParts = 20 * blocks
	// dependent is how many parts later what comes may still depend on what came: a timer has more and less by turns, which
	// comes to the same in the end.
	dependent = 2
	// regular is the chance of a load up to which it comes again as it came, such as by a timer: its parts in another order
	// would have what never comes together do so.
	regular = 0.02
	// mostChance bounds by how much a mean load is taken to differ.
	mostChance = 0.3
	// surelyBusier is for how many standard deviations more of the mean load a bucket surely suffices. Of a mean alone 1.6 would do,
	// but 12 parts tell its deviation badly, and the busiest times of all are in few recordings: with 2 a burst kept p99 in 77 % of 60
	// drawn services, with 2.6 in 83 %, with 4 in 95 %. They were others than those of docs/results/fleet.md.
	surelyBusier = 4
)

// offered is what came in each moment: seconds of CPU time, in the moment in which it would run if nothing held it, and how many
// runs began.
type offered struct {
	cpu  []float64
	runs []int32
	// open is the CPU time of runs that had not ended: they are no answers that wait, but they use up what a limit saves. nil: none.
	open []float64
	// chance is by which part the mean load of another time of the same length differs: its standard deviation, from the CPU
	// time of each part (Newey and West, Econometrica 55(3), 1987).
	chance float64
}

// offers adds up what came.
func (b *builder) offers() offered {
	end := b.now
	if b.runs == maxRuns { // later ones are not kept
		end = 0
		for _, t := range b.order {
			for _, r := range t.ended {
				end = max(end, r.woken)
			}
		}
	}
	n := max(1, int(end/int64(moment))/blocks) * blocks
	o := offered{cpu: make([]float64, n), runs: make([]int32, n), open: make([]float64, n)}
	add := func(to []float64, woken, left int64) {
		for at := int(max(0, woken) / int64(moment)); left > 0 && at < n; at++ {
			now := min(left, int64(moment))
			to[at] += time.Duration(now).Seconds()
			left -= now
		}
	}
	for _, t := range b.order {
		for _, r := range t.ended {
			if at := int(max(0, r.woken) / int64(moment)); at < n {
				o.runs[at]++
			}
			add(o.cpu, r.woken, r.cpu)
		}
		if !t.closed && t.State != schedule.Sleeping {
			left := t.run
			if !t.slept || t.run > t.longest { // it is replayed as one that never stops: endRecording
				left = int64(n) * int64(moment)
			}
			add(o.open, t.woken, left)
		}
	}
	o.chance = o.chanceOfMean()
	return o
}

func (o *offered) chanceOfMean() float64 {
	var in [blocks]float64
	mean, variance := 0.0, 0.0
	for i, cpu := range o.cpu {
		in[i*blocks/len(o.cpu)] += cpu
		mean += cpu / blocks
	}
	if mean == 0 {
		return 0
	}
	for lag := range dependent + 1 {
		with := 0.0
		for i := lag; i < blocks; i++ {
			with += (in[i] - mean) * (in[i-lag] - mean) / (blocks - 1)
		}
		if lag > 0 {
			with *= 2 * (1 - float64(lag)/(dependent+1))
		}
		variance += with
	}
	variance /= 1 - (1+dependent)/float64(blocks) // the mean is theirs too, so that they differ less from it
	return min(mostChance, math.Sqrt(max(0, variance)/blocks)/mean)
}

// bucket lets CPU time be spent: every so often as much as the limit gives in that time, and what is left over stays, up to most
// seconds in all.
type bucket struct {
	every       time.Duration
	limit, most float64
}

// quotaBucket is a limit with its burst, creditBucket a width with its credit.
func quotaBucket(l bandwidth.Limit) bucket {
	return bucket{l.Period, l.CPUs(), (l.Quota + l.Burst).Seconds()}
}

func creditBucket(cpus float64, credit time.Duration) bucket {
	return bucket{moment, cpus, credit.Seconds()}
}

// flow is what flows through a bucket, moment by moment.
type flow struct {
	bucket bucket
	// A refill of gives is due at each multiple of every moments; now is the moment.
	every, now   int
	gives        float64
	level, queue float64
}

// flow begins full.
func (b bucket) flow() flow {
	every := max(1, int(b.every/moment))
	return flow{bucket: b, every: every, gives: b.limit * float64(every) * moment.Seconds(), level: b.most}
}

// step takes in what comes in the next moment.
func (f *flow) step(comes float64) {
	if f.now%f.every == 0 {
		f.level = min(f.bucket.most, f.level+f.gives)
	}
	f.queue += comes
	done := min(f.queue, f.level)
	f.queue, f.level, f.now = f.queue-done, f.level-done, f.now+1
}

// delay is a quantile, in milliseconds, of how long what comes waits in a long time for a bucket, where more comes by a factor.
//
// Worked example: 0.8 CPUs are used, in bursts of 50 ms of work that come by chance, 16 a second. With a limit of 0.9 CPUs and a
// burst of one quota p99 is half a second, with 1.1 CPUs 90 ms, and with 1.4 CPUs nothing waits.
func (o *offered) delay(b bucket, factor, quantile float64) float64 {
	const most = 10_000 // ms
	var came [most + 1]int64
	rng, part := rand.New(rand.NewPCG(drawSeed, 1)), len(o.cpu)/blocks
	f, all := b.flow(), int64(0)
	for n := range longParts {
		from := n % blocks * part
		if o.chance > regular {
			from = rng.IntN(blocks) * part
		}
		for i := from; i < from+part; i++ {
			due := f.every - f.now%f.every // moments to the next refill
			f.step(factor * o.cpu[i])
			waits := 0.0
			if f.queue > 1e-9 {
				waits = milliseconds(moment)*float64(due) + 1000*max(0, f.queue-f.gives)/b.limit
			}
			came[int(min(most, waits))] += int64(o.runs[i])
			all += int64(o.runs[i])
		}
	}
	above := all - int64(math.Ceil(quantile*float64(all)))
	for ms := most; ms > 0; ms-- {
		if above -= came[ms]; above < 0 {
			return float64(ms)
		}
	}
	return 0
}
