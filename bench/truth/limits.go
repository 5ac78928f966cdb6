package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
}

// Stakes sums up the cases.
func (n choices) Stakes() (s stakes) {
	var regrets, overs, overNones []float64
	for _, j := range n.All {
		left, alone := j.K.figures(j.InForce()), j.K.figures(leaveIt)
		if j.C.Healthy || j.K.work() || !j.F.Known || left.Rounds == 0 || alone.Rounds == 0 {
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
		if none := j.K.figures(noLimit); none.Rounds > 0 {
			overNones = append(overNones, left.Median/none.Median)
		}
	}
	s.Unlimited = len(overNones)
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
