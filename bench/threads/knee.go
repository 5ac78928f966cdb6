package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/test/study"
)

// How much load a real Finagle server carries within an objective: pings and bursts of short work, at random times that do not depend
// on the answers. The load is a share of what the limit's CPUs can carry. A search halves a grid of loads, for each variant and round.

// partFinagle are those points.
const partFinagle = "finagle"

const (
	kneeLimit      = 1.5
	kneeBurst      = 8
	kneeWork       = 5 * time.Millisecond
	kneeBoundMS    = 50  // of a ping's p99
	kneeWorkMS     = 250 // of a work's p99: what keeps its bound by letting work wait for seconds carries no load
	kneePingsEvery = 5 * time.Millisecond
)

// kneeLoads is the grid.
var kneeLoads = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}

// ofFinagle are the variants, by their names in the service.
var ofFinagle = map[variant]string{finagleInline: "inline", finagleOffloaded: "offloaded", finagleBudget: "budget"}

var finagleVariants = []variant{finagleInline, finagleOffloaded, finagleBudget}

// finagleCommand starts the service. The Offload Filter is Finagle's own: unthrottle-finagle, which would replace its threads, is
// not on the class path then.
func (b *bench) finagleCommand(v variant) []string {
	target := filepath.Dir(b.jar)
	jars, _ := filepath.Glob(filepath.Join(target, "lib", "*.jar")) // the pattern is well-formed
	command, path := []string{"java"}, []string{filepath.Join(target, "classes")}
	if v == finagleOffloaded {
		command = append(command, "-Dcom.twitter.finagle.offload.auto=true")
		jars = slices.DeleteFunc(jars, func(jar string) bool { return strings.HasPrefix(filepath.Base(jar), "unthrottle-finagle") })
	}
	return append(command, "-cp", strings.Join(append(path, jars...), ":"), "io.github.unthrottle.bench.FinagleService", ofFinagle[v])
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

// objective is what a point has to keep.
type objective struct {
	pingMS, workMS float64 // of p99
}

var (
	ofBoth  = objective{kneeBoundMS, kneeWorkMS}
	ofPings = objective{kneeBoundMS, math.Inf(1)}
)

// kept reports whether a point kept an objective, and did its work.
func (p piece) kept(o objective) bool {
	return p.PingP99MS <= o.pingMS && p.WorkP99MS <= o.workMS && p.WorksDone*100 >= p.Works*95
}

// knee is the highest load of the grid at which an objective was kept and the lowest at which it was missed; 0 and +Inf: none.
func knee(pieces []piece, o objective, v variant, round int) (kept, missed float64) {
	missed = math.Inf(1)
	for _, p := range pieces {
		if p.Part != partFinagle || p.Variant != v || p.Round != round {
			continue
		}
		if p.kept(o) {
			kept = max(kept, p.Share)
		} else {
			missed = min(missed, p.Share)
		}
	}
	return min(kept, missed), missed
}

// nextLoad is the load that a search asks for; false: it has ended.
func nextLoad(pieces []piece, v variant, round int) (float64, bool) {
	kept, missed := knee(pieces, ofBoth, v, round)
	var open []float64
	for _, load := range kneeLoads {
		if load > kept && load < missed {
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
			fmt.Printf("%s under %g CPUs, %s, round %d, %.0f %%: %d of %d periods throttled, ping p99 %.1f ms, "+
				"%d of %d works, work p99 %.1f ms, kept %v\n",
				partFinagle, p.Limit, v, round, 100*load, p.Throttled, p.Periods, p.PingP99MS, p.WorksDone, p.Works, p.WorkP99MS,
				p.kept(ofBoth))
		}
	}
	return nil
}

// ratio is from what to what a highest load lies, over that of a control: the loads of the grid at which both can lie. An infinite end is
// one that nothing bounds.
type ratio struct{ low, high float64 }

func (r ratio) String() string {
	switch {
	case r.low == r.high:
		return fmt.Sprintf("%.2f", r.low)
	case r.low == 0:
		return fmt.Sprintf("at most %.2f", r.high)
	case math.IsInf(r.high, 1):
		return fmt.Sprintf("at least %.2f", r.low)
	}
	return fmt.Sprintf("%.2f to %.2f", r.low, r.high)
}

// most is the highest load of the grid at which an objective can be kept, where one of the grid is known to be missed; else it is infinite.
func most(kept, missed float64) float64 {
	if math.IsInf(missed, 1) {
		return missed
	}
	for _, load := range kneeLoads {
		if load > kept && load < missed {
			kept = load
		}
	}
	return kept
}

// gainOf compares a round; false: a side of it is not measured, or nothing bounds the ratio.
func gainOf(pieces []piece, o objective, control variant, round int) (ratio, bool) {
	with, missed := knee(pieces, o, finagleBudget, round)
	without, missedWithout := knee(pieces, o, control, round)
	if math.IsInf(missed, 1) && with == 0 || math.IsInf(missedWithout, 1) && without == 0 {
		return ratio{}, false
	}
	r := ratio{with / max(most(without, missedWithout), kneeLoads[0]), math.Inf(1)}
	if least := max(without, kneeLoads[0]); without > 0 {
		r.high = most(with, missed) / least
	}
	return r, r.low > 0 || !math.IsInf(r.high, 1)
}

// kneeAims are the gains over each control, round for round; the bound is for the least that the worst round is known to have.
func kneeAims(pieces []piece) (found []aim) {
	for _, control := range finagleVariants[:2] {
		var texts []string
		least := math.Inf(1)
		for round := 1; round <= kneeRounds; round++ {
			if r, ok := gainOf(pieces, ofBoth, control, round); ok {
				texts, least = append(texts, r.String()), min(least, r.low)
			}
		}
		if len(texts) > 0 {
			found = append(found, aim{fmt.Sprintf("Finagle, open loop: highest load with p99 of pings within %d ms and of work within %d ms, "+
				"over that of `%s`, each round", kneeBoundMS, kneeWorkMS, control), strings.Join(texts, "; "), 1.5, least >= 1.5})
		}
	}
	return found
}

// kneeText is a variant's highest load in a round; "": it is not measured.
func kneeText(pieces []piece, o objective, v variant, round int) string {
	kept, missed := knee(pieces, o, v, round)
	switch upto := most(kept, missed); {
	case kept == 0 && math.IsInf(missed, 1):
		return ""
	case kept == 0:
		return fmt.Sprintf("below %.0f %%", 100*missed)
	case math.IsInf(missed, 1):
		return fmt.Sprintf("at least %.0f %%, the highest of the grid", 100*kept)
	case upto > kept:
		return fmt.Sprintf("%.0f to %.0f %%", 100*kept, 100*upto)
	}
	return fmt.Sprintf("%.0f %%", 100*kept)
}

// kneeRounds is how many rounds the page looks for.
const kneeRounds = 9
