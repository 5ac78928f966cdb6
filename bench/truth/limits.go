package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/stats"
	"github.com/unthrottle/unthrottle/test/study"
)

// stakes are how far what fix left is from what could be had, over the services that are stopped and have latencies.
type stakes struct {
	// Services are those of which all of this is known but OverNone, which Unlimited have.
	Services, Unlimited int
	// Lowest: no remedy at equal CPU has a lower median. Above10 and Above25 have one that is lower by so many percent of it.
	Lowest, Above10, Above25 int
	// Halved: what fix left is at most half of leaving it.
	Halved int
	// Regret is by how many times what fix left is longer than the lowest median, Over of leaving it, OverNone of no limit: medians.
	Regret, Over, OverNone float64
	// HeldOut is what fix left over the remedy that the other rounds choose, in the round that is left out: the median of the Tested
	// services with so many rounds that they can choose. Worse10 and Better10 are those with more than 10 % more, and less.
	HeldOut                   float64
	Tested, Worse10, Better10 int
	// None10 and None50 are those of Unlimited with more than 10 and 50 % more than without a limit.
	None10, None50 int
}

// stopped tells whether a quota stops the case: its truth names a cause that does.
func stopped(c services.Case) bool {
	return slices.ContainsFunc(c.Causes, func(cause string) bool { return diagnose.Cause(cause).ByQuota() })
}

// leastHeldOut is how many rounds a service needs for the others to choose.
const leastHeldOut = 3

// heldOut is what fix left over the remedy at equal CPU with the lowest median in the other rounds, in the round that is left out: the
// median over all rounds; 0: there are too few. The lowest of ten medians is low by chance too, which this takes out.
func (j judged) heldOut() float64 {
	at := func(variant string, round int) (p99 float64, others []float64) {
		for _, r := range j.K.runsOf(variant) {
			switch {
			case r.P99 == nil:
			case r.Round == round:
				p99 = *r.P99
			default:
				others = append(others, *r.P99)
			}
		}
		return p99, others
	}
	var overs []float64
	for round := 1; round <= j.K.Rounds; round++ {
		left, _ := at(j.InForce(), round)
		lowest, chosen := math.Inf(1), 0.0
		for _, v := range j.K.Variants {
			p99, others := at(v.Name, round)
			if grantsNoMore(j.C, v) && p99 > 0 && len(others) >= leastHeldOut-1 && stats.Median(others) < lowest {
				lowest, chosen = stats.Median(others), p99
			}
		}
		if left > 0 && chosen > 0 {
			overs = append(overs, left/chosen)
		}
	}
	if len(overs) < leastHeldOut {
		return 0
	}
	return stats.Median(overs)
}

// Stakes sums up the cases.
func (n choices) Stakes() (s stakes) {
	var regrets, overs, overNones, heldOut []float64
	for _, j := range n.All {
		left, alone := j.K.figures(j.InForce()), j.K.figures(leaveIt)
		if !stopped(j.C) || j.K.work() || !j.F.Known || left.Rounds == 0 || alone.Rounds == 0 {
			continue
		}
		best := j.K.figures(j.F.Best).Median
		s.Services++
		regret := left.Median / best
		regrets, overs = append(regrets, regret), append(overs, left.Median/alone.Median)
		s.Lowest += count(regret <= 1)
		s.Above10 += count(regret > 1.1)
		s.Above25 += count(regret > 1.25)
		s.Halved += count(left.Median <= alone.Median/2)
		if over := j.heldOut(); over > 0 {
			heldOut = append(heldOut, over)
			s.Worse10 += count(over > 1.1)
			s.Better10 += count(over < 0.9)
		}
		if none := j.K.figures(noLimit); none.Rounds > 0 {
			over := left.Median / none.Median
			overNones = append(overNones, over)
			s.None10 += count(over > 1.1)
			s.None50 += count(over > 1.5)
		}
	}
	s.Unlimited, s.Tested, s.HeldOut = len(overNones), len(heldOut), stats.Median(heldOut)
	s.Regret, s.Over, s.OverNone = stats.Median(regrets), stats.Median(overs), stats.Median(overNones)
	return s
}

// OverNone is what fix left over no limit, at most at the same CPU time; "-": no limit was not measured.
func (j judged) OverNone() string {
	left, none := j.K.figures(j.InForce()), j.K.figures(noLimit)
	if left.Rounds == 0 || none.Rounds == 0 || none.Median <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", left.Median/none.Median)
}

// Sick are the services of which it is known what fix left and what leaving them is, the farthest from no limit first; those of which no
// limit was not measured come last.
func (n choices) Sick() []judged {
	all := n.without(func(j judged) bool { return j.C.Healthy || j.K.work() || !j.F.Known })
	slices.SortStableFunc(all, func(a, b judged) int {
		over := func(j judged) float64 {
			left, none := j.K.figures(j.InForce()), j.K.figures(noLimit)
			if none.Rounds == 0 {
				return 0
			}
			return left.Median / none.Median
		}
		return cmp.Compare(over(b), over(a))
	})
	return all
}

// InForce is what fix left in force.
func (j judged) InForce() string { return cmp.Or(j.K.Fix.Left, leaveIt) }

// Rounds is how many rounds what fix left was measured in.
func (j judged) Rounds() int { return j.K.figures(j.InForce()).Rounds }

// OneCPU are the services whose limit is one CPU, so that exclusive use of one is equal CPU.
func (n choices) OneCPU() []judged {
	return n.without(func(j judged) bool { return j.C.Healthy || j.K.work() || j.C.Limit != 1 })
}

// Pinned are the cells of a service in the table of exclusive CPUs: p99 and p50 alone and on a CPU of its own, with their
// rounds, and what fix left.
func (j judged) Pinned() []string {
	spread := func(s study.Spread) string {
		if s.Rounds == 0 {
			return "-"
		}
		return fmt.Sprintf("%s (%s to %s)", short(s.Median), short(s.Low), short(s.High))
	}
	p50 := func(variant string) study.Spread {
		var values []float64
		for _, r := range j.K.runsOf(variant) {
			if r.P50 != nil {
				values = append(values, *r.P50)
			}
		}
		return study.SpreadOf(values)
	}
	rounds := fmt.Sprint(j.K.figures(exclusive).Rounds)
	if rounds == "0" {
		rounds = "-"
		if slices.ContainsFunc(j.K.Variants, func(v variant) bool { return v.Name == exclusive && v.Refused != "" }) {
			rounds = "refused"
		}
	}
	return []string{spread(j.K.figures(leaveIt)), spread(p50(leaveIt)), spread(j.K.figures(exclusive)), spread(p50(exclusive)), rounds,
		j.InForce(), j.Ms(j.InForce())}
}

// busyHost is from how many CPUs on, used by all else on the host in the median run, a service's figures were not measured alone.
const busyHost = 0.5

// BusyHost are the services beside which all else on the host was busy, with what all else on the host used in the median run.
func (n choices) BusyHost() string {
	var names []string
	for _, j := range n.All {
		var others []float64
		for _, r := range j.K.Runs {
			others = append(others, r.OthersCPUs)
		}
		if m := stats.Median(others); len(others) > 0 && m > busyHost {
			names = append(names, fmt.Sprintf("`%s` %.1f", j.C.Name, m))
		}
	}
	return strings.Join(names, ", ")
}

// MostBusy is busyHost for the page.
func (choices) MostBusy() float64 { return busyHost }

// Scaled are the services whose client sent a part of the case's requests, on a host slower than that of the case, with the part.
func (n choices) Scaled() string {
	var parts []string
	for _, j := range n.All {
		parts = appendPart(parts, j.C.Name, j.K.Load)
	}
	return strings.Join(parts, ", ")
}

// appendPart adds a case whose client sent a part of its requests; load 0: it sent all of them.
func appendPart(to []string, name string, load float64) []string {
	if load == 0 {
		return to
	}
	return append(to, fmt.Sprintf("`%s` %.2f", name, load))
}
