package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/bench/study"
)

// How much load a real Finagle server carries within an objective: pings and bursts of short work, at random times that do not depend
// on the answers. The load is a share of what the limit's CPUs can carry. A search halves a grid of loads, for each variant and round.

// partFinagle are those points.
const partFinagle = "finagle"

const (
	kneeLimit      = 1.5
	kneeBurst      = 8
	kneeWork       = 5 * time.Millisecond
	kneeBoundMS    = 50 // of a ping's p99
	kneePingsEvery = 5 * time.Millisecond
)

// kneeLoads is the grid.
var kneeLoads = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// ofFinagle are the variants, by their names in the service.
var ofFinagle = map[variant]string{finagleInline: "inline", finagleBudget: "budget"}

var finagleVariants = []variant{finagleInline, finagleBudget}

// finagleCommand starts the service.
func (b *bench) finagleCommand(v variant) []string {
	target := filepath.Dir(b.jar)
	path := filepath.Join(target, "classes") + ":" + filepath.Join(target, "lib", "*")
	return []string{"java", "-cp", path, "io.github.unthrottle.bench.FinagleService", ofFinagle[v]}
}

// kneeRequests are pings at a steady rate, and bursts of work at random times that make a share of the limit.
func kneeRequests(d time.Duration, share float64, seed uint64) (requests []request) {
	r := rand.New(rand.NewPCG(seed, 1))
	perSecond := share * kneeLimit / (kneeBurst * kneeWork.Seconds())
	next := func(at time.Duration) time.Duration {
		return at + time.Duration(r.ExpFloat64()/perSecond*float64(time.Second))
	}
	burst := next(0)
	for ping := time.Duration(0); ping < d; ping += kneePingsEvery {
		for ; burst < ping && burst < d; burst = next(burst) {
			for range kneeBurst {
				requests = append(requests, request{burst, fmt.Sprintf("/work?cpu_us=%d", kneeWork.Microseconds())})
			}
		}
		requests = append(requests, request{ping, "/ping"})
	}
	return requests
}

// met reports whether a point kept the objective, and did its work.
func (p piece) met() bool { return p.PingP99MS <= kneeBoundMS && p.WorksDone*100 >= p.Works*95 }

// knee is the highest load of the grid that was met and the lowest that was missed; 0 and +Inf: none.
func knee(pieces []piece, v variant, round int) (met, missed float64) {
	missed = math.Inf(1)
	for _, p := range pieces {
		if p.Part != partFinagle || p.Variant != v || p.Round != round {
			continue
		}
		if p.met() {
			met = max(met, p.Share)
		} else {
			missed = min(missed, p.Share)
		}
	}
	return min(met, missed), missed
}

// nextLoad is the load that a search asks for; false: it has ended.
func nextLoad(pieces []piece, v variant, round int) (float64, bool) {
	met, missed := knee(pieces, v, round)
	var open []float64
	for _, load := range kneeLoads {
		if load > met && load < missed {
			open = append(open, load)
		}
	}
	if len(open) == 0 {
		return 0, false
	}
	return open[len(open)/2], true
}

// finagle measures what is missing of a round, the variants in turn.
func (b *bench) finagle(lines *study.Lines[piece], round int, d time.Duration) error {
	for more := true; more; {
		more = false
		for i := range finagleVariants {
			v := finagleVariants[(i+round)%len(finagleVariants)]
			load, ok := nextLoad(lines.All, v, round)
			if !ok {
				continue
			}
			more = true
			settle := v.settle()
			p, err := b.answered(v, kneeLimit, kneeRequests(settle+d, load, uint64(round)), d)
			if err != nil {
				return err
			}
			p.Made, p.Part, p.Round, p.Share = study.Now(time.Now()), partFinagle, round, load
			if err := lines.Add(p); err != nil {
				return err
			}
			fmt.Printf("%s under %g CPUs, %s, round %d, %.0f %%: %d of %d periods throttled, ping p99 %.1f ms, %d of %d works, met %v\n",
				partFinagle, p.Limit, v, round, 100*load, p.Throttled, p.Periods, p.PingP99MS, p.WorksDone, p.Works, p.met())
		}
	}
	return nil
}

// kneeAim is the least gain of a round over the event loops alone; where those met no load, over the lowest of the grid, which is a bound.
func kneeAim(pieces []piece) (a aim, ok bool) {
	a = aim{What: "Finagle, open loop: highest load within the budget, of that on the event loops (the worst round)",
		Value: math.Inf(1), Bound: 1.5}
	for round := 1; round <= kneeRounds; round++ {
		with, _ := knee(pieces, finagleBudget, round)
		without, missed := knee(pieces, finagleInline, round)
		if with == 0 || without == 0 && math.IsInf(missed, 1) {
			continue
		}
		a.Value, ok = min(a.Value, with/max(without, kneeLoads[0])), true
	}
	a.Met = a.Value >= a.Bound
	return a, ok
}

// kneeRounds is how many rounds the page looks for.
const kneeRounds = 9
