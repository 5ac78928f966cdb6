package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
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
var ofFinagle = map[variant]string{finagleInline: "inline", finagleOffloaded: "offloaded", finagleBudget: "budget"}

var finagleVariants = []variant{finagleInline, finagleOffloaded, finagleBudget}

// finagleCommand starts the service. The Offload Filter is Finagle's own: unthrottle-finagle, which would replace its threads, is not on
// the class path then.
func (b *bench) finagleCommand(v variant) []string {
	target := filepath.Dir(b.jar)
	found, _ := filepath.Glob(filepath.Join(target, "lib", "*.jar")) // the pattern is well-formed
	path, flags := []string{filepath.Join(target, "classes")}, []string(nil)
	for _, jar := range found {
		if v != finagleOffloaded || !strings.HasPrefix(filepath.Base(jar), "unthrottle-finagle") {
			path = append(path, jar)
		}
	}
	if v == finagleOffloaded {
		flags = append(flags, "-Dcom.twitter.finagle.offload.auto=true")
	}
	return append(append([]string{"java"}, flags...), "-cp", strings.Join(path, ":"), "io.github.unthrottle.bench.FinagleService", ofFinagle[v])
}

// kneeRequests are pings at a steady rate, and bursts of work at random times that make a share of the limit.
func kneeRequests(d time.Duration, share float64, seed uint64) (all []request) {
	r := rand.New(rand.NewPCG(seed, 1))
	perSecond := share * kneeLimit / (kneeBurst * kneeWork.Seconds())
	next := func(at time.Duration) time.Duration {
		return at + time.Duration(r.ExpFloat64()/perSecond*float64(time.Second))
	}
	burst := next(0)
	for ping := time.Duration(0); ping < d; ping += kneePingsEvery {
		for ; burst < ping && burst < d; burst = next(burst) {
			for range kneeBurst {
				all = append(all, request{burst, fmt.Sprintf("/work?cpu_us=%d", kneeWork.Microseconds())})
			}
		}
		all = append(all, request{ping, "/ping"})
	}
	return all
}

// met reports whether a point kept the objective, and did its work.
func (p piece) met() bool { return p.PingP99MS <= kneeBoundMS && p.WorksDone*100 >= p.Works*95 }

// knee is the highest load of the grid that was met and the lowest that was missed; 0 and +Inf: none.
func knee(all []piece, v variant, round int) (met, missed float64) {
	missed = math.Inf(1)
	for _, p := range all {
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
func nextLoad(all []piece, v variant, round int) (float64, bool) {
	met, missed := knee(all, v, round)
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

// kneeText is a variant's highest load in a round.
func kneeText(all []piece, v variant, round int) string {
	met, missed := knee(all, v, round)
	switch {
	case met == 0 && math.IsInf(missed, 1):
		return ""
	case met == 0:
		return fmt.Sprintf("below %.0f %%", 100*kneeLoads[0])
	case math.IsInf(missed, 1):
		return fmt.Sprintf("at least %.0f %%", 100*met)
	}
	return fmt.Sprintf("%.0f %%", 100*met)
}

// kneeAim is the least gain of a round over the event loops alone; where those met no load, over the lowest of the grid, which is a bound.
func kneeAim(all []piece) (a aim, ok bool) {
	a = aim{what: "Finagle, open loop: highest load within the budget, of that on the event loops (the worst round)", value: math.Inf(1), bound: 1.5}
	for round := 1; round <= kneeRounds; round++ {
		with, _ := knee(all, finagleBudget, round)
		without, missed := knee(all, finagleInline, round)
		if with == 0 || without == 0 && math.IsInf(missed, 1) {
			continue
		}
		a.value, ok = min(a.value, with/max(without, kneeLoads[0])), true
	}
	a.met = a.value >= a.bound
	return a, ok
}

// kneeRounds is how many rounds the page looks for.
const kneeRounds = 9

func tableOfKnees(p *study.Page, all []piece) {
	p.Line("\n## %g CPUs, Finagle: how much load is within the objective", kneeLimit)
	p.Line("\nA ping each 5 ms, whose p99 is to stay within %d ms, and bursts of %d works of %d ms of CPU time at random times, of which 95 %% are to be done.", kneeBoundMS, kneeBurst, kneeWork.Milliseconds())
	p.Line("Loads are shares of what %g CPUs can carry, in steps of a tenth; the highest one within the objective, for each round.", kneeLimit)
	heads := []string{"variant", "highest load, each round"}
	for _, load := range kneeLoads {
		heads = append(heads, fmt.Sprintf("ping p99, ms, at %.0f %%:", 100*load))
	}
	t := p.Table(heads...)
	for _, v := range finagleVariants {
		var rounds []string
		for round := 1; round <= kneeRounds; round++ {
			if text := kneeText(all, v, round); text != "" {
				rounds = append(rounds, text)
			}
		}
		row := []any{v, strings.Join(rounds, ", ")}
		for _, load := range kneeLoads {
			var at []float64
			for _, one := range all {
				if one.Part == partFinagle && one.Variant == v && one.Share == load {
					at = append(at, one.PingP99MS)
				}
			}
			cell := ""
			if len(at) > 0 {
				cell = spread(at, 0)
			}
			row = append(row, cell)
		}
		t.Row(row...)
	}
}
