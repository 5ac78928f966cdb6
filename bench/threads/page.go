package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/bench/study"
)

// page is docs/results/threads.md.
func page(all []piece) string {
	var p study.Page
	p.Line("# Threads: a Go service under a limit, with and without the library")
	p.Line("\nWritten by `make results-threads` from bench/threads/records.jsonl.gz. [The library](../howto/in-your-go-code.md) is `libs/go`.")
	if len(all) == 0 {
		p.Line("\nNothing is measured yet.")
		return p.String()
	}
	judge(&p, all)
	p.Rest()
	for _, s := range plan {
		if s.part != partSpiral && (s.part != partNetty || measured(all, s)) {
			tableOfBursts(&p, all, s)
		}
	}
	if slices.ContainsFunc(all, func(p piece) bool { return p.Part == partFinagle }) {
		tableOfKnees(&p, all)
	}
	tableOfSpiral(&p, all)
	if err := tableOfForecast(&p, all); err != nil {
		p.Line("\nWhat a forecast says of it could not be simulated: %v.", err)
	}
	how(&p, all)
	return p.String()
}

// values are a figure of each round of a variant.
func values(all []piece, s step, v variant, of func(piece) float64) (found []float64) {
	for _, p := range all {
		if p.Part == s.part && p.Limit == s.limit && p.Variant == v {
			found = append(found, of(p))
		}
	}
	return found
}

func throttledShare(p piece) float64 { return float64(p.Throttled) / float64(max(1, p.Periods)) * 100 }
func pingP99(p piece) float64        { return p.PingP99MS }
func workP99(p piece) float64        { return p.WorkP99MS }
func doneShare(p piece) float64      { return float64(p.WorksDone) / float64(max(1, p.Works)) * 100 }

// aim is a bound that the library was to reach, and what came of it.
type aim struct {
	what         string
	value, bound float64
	met          bool
}

// aims are those of bursts under each limit, and of the spiral, as far as they are measured.
func aims(all []piece) (found []aim) {
	for _, s := range plan {
		base, library := s.ends()
		ratio := func(of func(piece) float64) (float64, bool) {
			with, without := study.SpreadOf(values(all, s, library, of)), study.SpreadOf(values(all, s, base, of))
			return with.Median / without.Median, with.Rounds > 0 && without.Rounds > 0 && without.Median > 0
		}
		if s.part == partSpiral {
			if v := values(all, s, shedAt, recoveredOrEnd); len(v) > 0 {
				worst := slices.Max(v)
				found = append(found, aim{"spiral: seconds until answers are good again, the worst round", worst, 3, worst <= 3})
			}
			continue
		}
		for _, of := range []struct {
			what  string
			of    func(piece) float64
			bound float64
			least bool
		}{{"throttled periods, of those without", throttledShare, 0.1, false}, {"ping p99, of that without", pingP99, 0.2, false}, {"work done, of that without", doneShare, 0.95, true}} {
			if r, ok := ratio(of.of); ok {
				met := r <= of.bound
				if of.least {
					met = r >= of.bound
				}
				found = append(found, aim{fmt.Sprintf("%g CPUs%s: %s", s.limit, inWords[s.part], of.what), r, of.bound, met})
			}
		}
	}
	if a, ok := kneeAim(all); ok {
		found = append(found, a)
	}
	return found
}

func recoveredOrEnd(p piece) float64 {
	if p.RecoveredS == nil {
		return (spiralFor - spikeTo).Seconds()
	}
	return *p.RecoveredS
}

// judge shows the aims, missed ones first.
func judge(p *study.Page, all []piece) {
	found := aims(all)
	slices.SortStableFunc(found, func(a, b aim) int {
		switch {
		case a.met == b.met:
			return 0
		case b.met:
			return -1
		}
		return 1
	})
	p.Line("\n## In short")
	for _, s := range plan {
		base, library := s.ends()
		with, without := values(all, s, library, workP99), values(all, s, base, workP99)
		if (s.part == partBursts || s.part == partNetty) && len(with) > 0 && len(without) > 0 {
			p.Line("\nThe price under %g CPUs%s: work that is held back has a p99 of %s ms, without the library %s ms.", s.limit, inWords[s.part], spread(with, 0), spread(without, 0))
		}
	}
	t := p.Table("aim", "measured:", "bound:", "")
	for _, a := range found {
		verdict := "met"
		if !a.met {
			verdict = "MISSED"
		}
		t.Row(a.what, fmt.Sprintf("%.2f", a.value), fmt.Sprintf("%g", a.bound), verdict)
	}
}

// spread is a median with its range over the rounds.
func spread(v []float64, decimals int) string {
	s := study.SpreadOf(v)
	if s.Rounds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, s.Median, decimals, s.Low, decimals, s.High)
}

// inWords is what a part adds to a limit.
var inWords = map[string]string{partOverload: ", overloaded", partNetty: ", Netty"}

// measured reports whether a step has a piece.
func measured(all []piece, s step) bool {
	return slices.ContainsFunc(all, func(p piece) bool { return p.Part == s.part && p.Limit == s.limit })
}

func tableOfBursts(p *study.Page, all []piece, s step) {
	p.Line("\n## %g CPUs%s: pings beside bursts of work", s.limit, inWords[s.part])
	p.Line("\nA ping each 5 ms; each 250 ms %d works of 20 ms of CPU time at once: %.2f CPUs of work. The median of the rounds, and their range.",
		s.works, float64(s.works)*20/250)
	t := p.Table("variant", "throttled periods, %:", "ping p50, ms:", "ping p99, ms:", "work p50, ms:", "work p99, ms:", "work done, %:", "CPUs used:", "rounds:")
	for _, v := range s.variants {
		of := func(f func(piece) float64, decimals int) string { return spread(values(all, s, v, f), decimals) }
		t.Row(v, of(throttledShare, 0), of(func(p piece) float64 { return p.PingP50MS }, 1), of(pingP99, 1), of(func(p piece) float64 { return p.WorkP50MS }, 0),
			of(workP99, 0), of(doneShare, 0), of(func(p piece) float64 { return p.UsedCPUs }, 2), len(values(all, s, v, pingP99)))
	}
}

func tableOfSpiral(p *study.Page, all []piece) {
	s := plan[slices.IndexFunc(plan, func(s step) bool { return s.part == partSpiral })]
	p.Line("\n## 0.5 CPUs: a death spiral")
	p.Line("\n[death-spiral-small.yaml](../../examples/scenarios/death-spiral-small.yaml) as a real service: 67 requests a second of 3 ms, three times as many for 2.5 s,")
	p.Line("then 10 s of the old load. Clients give up after 250 ms and try once more. A request's work grows by 0.6 %% for each request on its way.")
	p.Line("The plain service has 8 threads and a queue of 150, and works on for clients that have gone. The library's queue drops those.")
	t := p.Table("variant", "good again after, s, each round", "failed after the spike, %:")
	for _, v := range s.variants {
		var rounds []string
		for _, one := range all {
			if one.Part == s.part && one.Variant == v {
				text := "not until the end"
				if one.RecoveredS != nil {
					text = fmt.Sprintf("%.0f", *one.RecoveredS)
				}
				rounds = append(rounds, text)
			}
		}
		t.Row(v, strings.Join(rounds, ", "), spread(values(all, s, v, func(p piece) float64 { return p.Failed * 100 }), 1))
	}
	p.Line("\nGood again: the end of the last second with more than one answer in twenty missing or later than 250 ms.")
}

func how(p *study.Page, all []piece) {
	p.Line("\n## The variants")
	t := p.Table("variant", "is")
	for _, v := range []variant{plain, sized, permit, paced, shedAt, nettyInline, nettyOffloaded, nettyPaced, finagleInline, finagleOffloaded, finagleBudget} {
		if !v.ofJVM() || slices.ContainsFunc(all, func(p piece) bool { return p.Variant == v }) {
			t.Row(v, v.about())
		}
	}
	last := all[len(all)-1]
	p.Line("\n## How it was measured")
	p.Line("\n%s, period 100 ms, last on %s. Service and client are processes in cgroups of their own at the highest CPU weight. Latencies", last.Machine, last.Day())
	p.Line("run from the intended time. Throttled periods are the kernel's nr_throttled / nr_periods. Variants take turns within a round. The first 4 s of")
	p.Line("each run are not counted, 45 s of Netty, 12 s of Finagle: the library learns the phase of the period in them, and the JVM compiles.")
	p.Line("\nOther work ran on this host meanwhile, so latencies are upper bounds. On a host of 2 CPUs a service is never wider than 2; wider hosts were not")
	p.Line("measured, nor cgroup v2. `go test -bench Task ./budget` in `libs/go` shows what a task costs.")
}
