package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// offering is what comes in bursts of 50 ms of work: by chance, or by a timer.
func offering(seconds int, perSecond float64, chance bool) (o offered) {
	n := seconds * int(time.Second/moment)
	o.cpu, o.runs = make([]float64, n), make([]int32, n)
	r, at := rand.New(rand.NewPCG(1, 2)), 0.0
	for {
		gap := 1 / perSecond
		if chance {
			gap *= r.ExpFloat64()
		}
		if at += gap; at >= float64(seconds) {
			o.chance = o.chanceOfMean()
			return o
		}
		i := int(at / moment.Seconds())
		o.cpu[i] += 0.05
		o.runs[i]++
	}
}

// What comes by chance needs more of a bucket than is used, and the more the less it holds; what a timer makes come does not.
func TestLongQueue(t *testing.T) {
	holding := func(cpus float64, most time.Duration) bucket {
		return bucket{100 * time.Millisecond, cpus, most.Seconds()}
	}
	o := offering(60, 16, true)
	used := 0.0
	for _, cpu := range o.cpu {
		used += cpu / 60
	}
	if near := o.delay(holding(used*1.02, 180*time.Millisecond), 1, 0.99); near < 300 {
		t.Errorf("with hardly more than %.2f CPUs p99 waits for %v ms", used, near)
	}
	if ample := o.delay(holding(used*4, time.Second), 1, 0.99); ample != 0 {
		t.Errorf("with four times as much p99 waits for %v ms", ample)
	}
	last := math.Inf(1)
	for cpus := used; cpus < 4*used; cpus *= 1.1 {
		waits := o.delay(holding(cpus, 180*time.Millisecond), 1, 0.99)
		if waits > last || waits > o.delay(holding(cpus, 100*time.Millisecond), 1, 0.99) ||
			waits > o.delay(holding(cpus, 180*time.Millisecond), 1.2, 0.99) {
			t.Errorf("%.2f CPUs: %v ms", cpus, waits)
		}
		last = waits
	}
	timer := offering(60, 16, false)
	if waits := timer.delay(holding(0.82, 180*time.Millisecond), 1, 0.99); waits > 0 {
		t.Errorf("what a timer makes come waits for %v ms", waits)
	}
	nothing := offered{cpu: make([]float64, blocks), runs: make([]int32, blocks)}
	if nothing.delay(holding(1, time.Second), 1, 0.99) != 0 || nothing.chanceOfMean() != 0 {
		t.Error("of nothing something is told")
	}
}

// The chance of a mean load is that of so many bursts, and next to none of a timer's.
func TestChanceOfMean(t *testing.T) {
	sum := 0.0
	const draws = 60
	r := rand.New(rand.NewPCG(3, 4))
	for range draws {
		o := offered{cpu: make([]float64, 1000), runs: make([]int32, 1000)}
		for range 400 {
			o.cpu[r.IntN(1000)] += 0.01
		}
		sum += o.chanceOfMean() / draws
	}
	// 400 bursts that come by chance are 400 give or take 20; that their number is given makes it less.
	if want := 1 / math.Sqrt(400); sum < want/2 || sum > want*1.3 {
		t.Errorf("%.3f, want about %.3f", sum, want)
	}
	if o := offering(10, 16, false); o.chance > regular {
		t.Errorf("a timer's: %.3f", o.chance)
	}
}
