package main

import (
	_ "embed"
	"fmt"
	"slices"
	"text/template"

	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// page is docs/results/threads.md.
func page(pieces []piece) (string, error) {
	told, err := toldRows(pieces)
	if err != nil {
		return "", err
	}
	r, err := errorOfBudget(pieces)
	if err != nil {
		return "", err
	}
	return study.Fill(pageText, template.FuncMap{"percent": func(share float64) float64 { return 100 * share }},
		content{pieces, told, r}), nil
}

// content is what the page's template is filled with.
type content struct {
	pieces []piece
	Told   []string // rows of what the simulator says
	Error  residual
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
	What, Measured string
	Bound          float64
	Met            bool
}

// Aims are those of bursts under each limit over each control, of the spiral and of Finagle, as far as they are measured,
// missed ones first.
func (c content) Aims() (found []aim) {
	for _, s := range plan {
		if s.part == partSpiral {
			if v := values(c.pieces, s, s.library(), recoveredOrEnd); len(v) > 0 {
				worst := slices.Max(v)
				found = append(found, aim{"spiral: seconds until answers are good again, the worst round", fmt.Sprintf("%.2f", worst), 3,
					worst <= 3})
			}
			continue
		}
		for _, control := range s.controls {
			found = append(found, c.aimsOver(s, control)...)
		}
	}
	found = append(found, kneeAims(c.pieces)...)
	missedFirst := func(a aim) int {
		if a.Met {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(found, func(a, b aim) int { return missedFirst(a) - missedFirst(b) })
	return found
}

// aimsOver holds the library against a control.
func (c content) aimsOver(s step, control variant) (found []aim) {
	for _, of := range []struct {
		what  string
		of    func(piece) float64
		bound float64
		least bool
	}{{"share of throttled periods", throttledShare, 0.1, false}, {"ping p99", pingP99, 0.2, false}, {"work done", doneShare, 0.95, true}} {
		with, without := study.SpreadOf(values(c.pieces, s, s.library(), of.of)), study.SpreadOf(values(c.pieces, s, control, of.of))
		if with.Rounds == 0 || without.Rounds == 0 || without.Median == 0 {
			continue
		}
		r := with.Median / without.Median
		found = append(found, aim{fmt.Sprintf("%g CPUs%s: %s over that of `%s`", s.limit, inWords[s.part], of.what, control),
			fmt.Sprintf("%.2f", r), of.bound, of.least && r >= of.bound || !of.least && r <= of.bound})
	}
	return found
}

func recoveredOrEnd(p piece) float64 {
	if p.RecoveredS == nil {
		return (spiralFor - spikeTo).Seconds()
	}
	return *p.RecoveredS
}

// price is what work pays that is held back: its p99, in ms, and that of the controls.
type price struct {
	Limit    float64
	Of, With string
	Without  []told
}

// told is a figure of a variant.
type told struct {
	Variant variant
	Figure  string
}

// Prices are those of bursts under each limit.
func (c content) Prices() (found []price) {
	for _, s := range plan {
		with := values(c.pieces, s, s.library(), workP99)
		if s.part != partBursts && s.part != partNetty || len(with) == 0 {
			continue
		}
		p := price{s.limit, inWords[s.part], spread(with, 0), nil}
		for _, control := range s.controls {
			if without := values(c.pieces, s, control, workP99); len(without) > 0 {
				p.Without = append(p.Without, told{control, spread(without, 0)})
			}
		}
		if len(p.Without) > 0 {
			found = append(found, p)
		}
	}
	return found
}

// spread is a median with its range over the rounds; "-": there is none.
func spread(v []float64, decimals int) string {
	s := study.SpreadOf(v)
	if s.Rounds == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, s.Median, decimals, s.Low, decimals, s.High)
}

// inWords is what a part adds to a limit.
var inWords = map[string]string{partOverload: ", overloaded", partNetty: ", Netty"}
