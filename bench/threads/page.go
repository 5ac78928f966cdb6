package main

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/bench/study"
)

//go:embed page.md
var pageText string

// page is docs/results/threads.md.
func page(pieces []piece) string {
	return study.Fill(pageText, nil, struct {
		Prices []price
		Aims   []aim
	}{prices(pieces), aims(pieces)})
}

// values are a figure of each round of a variant.
func values(pieces []piece, s step, v variant, pick func(piece) float64) (found []float64) {
	for _, p := range pieces {
		if p.Part == s.part && p.Limit == s.limit && p.Variant == v {
			found = append(found, pick(p))
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
	What         string
	Value, Bound float64
	Met          bool
}

// aims are those of bursts under each limit, and of the spiral, as far as they are measured, missed ones first.
func aims(pieces []piece) (found []aim) {
	for _, s := range plan {
		base, library := s.without, s.with
		ratio := func(pick func(piece) float64) (float64, bool) {
			with, without := study.SpreadOf(values(pieces, s, library, pick)), study.SpreadOf(values(pieces, s, base, pick))
			return with.Median / without.Median, with.Rounds > 0 && without.Rounds > 0 && without.Median > 0
		}
		if s.part == partSpiral {
			if v := values(pieces, s, library, recoveredOrEnd); len(v) > 0 {
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
		}{{"throttled periods, of those without", throttledShare, 0.1, false},
			{"ping p99, of that without", pingP99, 0.2, false}, {"work done, of that without", doneShare, 0.95, true}} {
			if r, ok := ratio(of.of); ok {
				met := r <= of.bound
				if of.least {
					met = r >= of.bound
				}
				found = append(found, aim{fmt.Sprintf("%g CPUs%s: %s", s.limit, inWords[s.part], of.what), r, of.bound, met})
			}
		}
	}
	if a, ok := kneeAim(pieces); ok {
		found = append(found, a)
	}
	missedFirst := func(a aim) int {
		if a.Met {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(found, func(a, b aim) int { return missedFirst(a) - missedFirst(b) })
	return found
}

func recoveredOrEnd(p piece) float64 {
	if p.RecoveredS == nil {
		return (spiralFor - spikeTo).Seconds()
	}
	return *p.RecoveredS
}

// price is what work pays that is held back: its p99, in ms.
type price struct {
	Limit             float64
	Of, With, Without string
}

func prices(pieces []piece) (found []price) {
	for _, s := range plan {
		with, without := values(pieces, s, s.with, workP99), values(pieces, s, s.without, workP99)
		if (s.part == partBursts || s.part == partNetty) && len(with) > 0 && len(without) > 0 {
			found = append(found, price{s.limit, inWords[s.part], spread(with), spread(without)})
		}
	}
	return found
}

// spread is a median with its range over the rounds.
func spread(v []float64) string {
	s := study.SpreadOf(v)
	return fmt.Sprintf("%.0f (%.0f to %.0f)", s.Median, s.Low, s.High)
}

// inWords is what a part adds to a limit.
var inWords = map[string]string{partOverload: ", overloaded", partNetty: ", Netty"}
