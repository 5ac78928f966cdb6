package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/test/study"
)

// What the page's second part shows: every variant that was measured, the controls among them, and under what conditions.

// burstsTable are all variants of a step.
type burstsTable struct {
	Limit  float64
	Of     string
	Works  int
	Wanted float64 // CPUs of work
	Rows   []string
}

// Bursts are the tables of the steps that are measured.
func (c content) Bursts() (tables []burstsTable) {
	for _, s := range plan {
		if s.part == partSpiral {
			continue
		}
		t := burstsTable{Limit: s.limit, Of: inWords[s.part], Works: s.works, Wanted: float64(s.works) * 20 / 250}
		for _, v := range s.variants {
			if rounds := len(values(c.pieces, s, v, pingP99)); rounds > 0 {
				of := func(pick func(piece) float64, decimals int) string {
					return spread(values(c.pieces, s, v, pick), decimals)
				}
				t.Rows = append(t.Rows, study.Row(v, of(throttledShare, 0),
					of(func(p piece) float64 { return p.PingP50MS }, 1), of(pingP99, 1),
					of(func(p piece) float64 { return p.WorkP50MS }, 0), of(workP99, 0), of(doneShare, 0),
					of(func(p piece) float64 { return p.UsedCPUs }, 2), rounds))
			}
		}
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// SizedWorse says how much longer pings take with the GOMAXPROCS that fits the limit; "": that is not measured.
func (c content) SizedWorse() string {
	var texts []string
	for _, s := range plan {
		with, without := study.SpreadOf(values(c.pieces, s, sized, pingP99)), study.SpreadOf(values(c.pieces, s, plain, pingP99))
		if s.part == partBursts && with.Rounds > 0 && without.Median > 0 {
			texts = append(texts, fmt.Sprintf("%.2f under %g CPUs", with.Median/without.Median, s.limit))
		}
	}
	return strings.Join(texts, ", ")
}

// KneeLoads are the heads of the loads that any variant of Finagle was measured at.
func (c content) KneeLoads() (loads []float64) {
	for _, load := range kneeLoads {
		if slices.ContainsFunc(c.pieces, func(p piece) bool { return p.Part == partFinagle && p.Share == load }) {
			loads = append(loads, load)
		}
	}
	return loads
}

// Knees are the rows of Finagle's variants: the highest loads with both bounds and with that of pings alone, then p99 of pings and of
// works at each load.
func (c content) Knees() (rows []string) {
	for _, v := range finagleVariants {
		each := func(o objective) string {
			var rounds []string
			for round := 1; round <= kneeRounds; round++ {
				if text := kneeText(c.pieces, o, v, round); text != "" {
					rounds = append(rounds, text)
				}
			}
			return strings.Join(rounds, ", ")
		}
		row := []any{v, each(ofBoth), each(ofPings)}
		if row[1] == "" {
			continue
		}
		for _, load := range c.KneeLoads() {
			var pings, works []float64
			for _, p := range c.pieces {
				if p.Part == partFinagle && p.Variant == v && p.Share == load {
					pings, works = append(pings, p.PingP99MS), append(works, p.WorkP99MS)
				}
			}
			cell := ""
			if len(pings) > 0 {
				cell = rangeOf(pings) + "; " + rangeOf(works)
			}
			row = append(row, cell)
		}
		rows = append(rows, study.Row(row...))
	}
	return rows
}

// rangeOf is from what to what figures go.
func rangeOf(v []float64) string {
	low, high := fmt.Sprintf("%.0f", slices.Min(v)), fmt.Sprintf("%.0f", slices.Max(v))
	if low == high {
		return low
	}
	return low + " to " + high
}

// PingsOnly is the gain of Finagle over its event loops where works may take any time, each round.
func (c content) PingsOnly() string {
	var texts []string
	for round := 1; round <= kneeRounds; round++ {
		if r, ok := gainOf(c.pieces, ofPings, finagleInline, round); ok {
			texts = append(texts, r.String())
		}
	}
	if len(texts) == 0 {
		return "not measured"
	}
	return strings.Join(texts, " and ")
}

// Spirals are the rows of the spiral's variants.
func (c content) Spirals() (rows []string) {
	s := plan[slices.IndexFunc(plan, func(s step) bool { return s.part == partSpiral })]
	for _, v := range s.variants {
		var rounds []string
		for _, p := range c.pieces {
			switch {
			case p.Part != s.part || p.Variant != v:
			case p.RecoveredS == nil:
				rounds = append(rounds, "not until the end")
			default:
				rounds = append(rounds, fmt.Sprintf("%.0f", *p.RecoveredS))
			}
		}
		if len(rounds) > 0 {
			failed := values(c.pieces, s, v, func(p piece) float64 { return p.Failed * 100 })
			rows = append(rows, study.Row(v, strings.Join(rounds, ", "), spread(failed, 1)))
		}
	}
	return rows
}

// toldRows are simulated figures beside the measured ones, of bursts without the library and with it.
func toldRows(pieces []piece) (rows []string, err error) {
	for _, s := range plan {
		if s.part != partBursts && s.part != partOverload {
			continue
		}
		for _, v := range []variant{plain, paced} {
			if len(values(pieces, s, v, pingP99)) == 0 {
				continue
			}
			told, err := simulated(s, v == paced)
			if err != nil {
				return nil, err
			}
			of := func(pick func(piece) float64, decimals int) string {
				return spread(values(pieces, s, v, pick), decimals)
			}
			rows = append(rows, study.Row(fmt.Sprintf("%g CPUs%s", s.limit, inWords[s.part]), v, fmt.Sprintf("%.0f", told.throttledShare),
				of(throttledShare, 0), fmt.Sprintf("%.1f", told.pingP99), of(pingP99, 1), fmt.Sprintf("%.0f", told.workP99), of(workP99, 0)))
		}
	}
	return rows, nil
}

// MedianOff and P99Off are the factors that most medians and p99 of the error are within.
func (r residual) MedianOff() float64 { return math.Exp(r.P50) }
func (r residual) P99Off() float64    { return math.Exp(r.P99) }

// Where is the machine and the day of the last piece.
func (c content) Where() string {
	last := c.pieces[len(c.pieces)-1]
	return fmt.Sprintf("%s, period 100 ms, last on %s", last.Machine, last.Day())
}

// Bounds of the objective, as the page says them.
func (content) PingBound() int     { return kneeBoundMS }
func (content) WorkBound() int     { return kneeWorkMS }
func (content) KneeLimit() float64 { return kneeLimit }
func (content) Phases() int        { return phases }
func (content) PingFloor() float64 { return pingFloor }
func (content) Covered() float64   { return 100 * covered }
func (content) KneeBurst() int     { return kneeBurst }
func (content) KneeWork() int64    { return kneeWork.Milliseconds() }
