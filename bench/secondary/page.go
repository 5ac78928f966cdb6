package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/test/study"
)

// rows are those of one service.
type rows struct{ pieces []piece }

// Service, Rounds, CPUs and Made are what was measured; Made is when and where the first round was.
func (r rows) Service() string  { return r.pieces[0].Service }
func (r rows) Rounds() int      { return len(r.pieces) }
func (r rows) CPUs() int        { return r.pieces[0].CPUs }
func (r rows) Made() study.Made { return r.pieces[0].Made }

// of is a figure of a variant in all rounds; over: over that of the first variant in the same round.
func (r rows) of(name string, over bool, value func(point) *float64) study.Spread {
	at := func(p piece, name string) *float64 {
		i := slices.IndexFunc(p.Points, func(q point) bool { return q.Variant == name })
		if i < 0 || p.Points[i].Refused != "" {
			return nil
		}
		return value(p.Points[i])
	}
	var all []float64
	for _, p := range r.pieces {
		is, was := at(p, name), at(p, variants[0].name)
		switch {
		case is == nil:
		case !over:
			all = append(all, *is)
		case was != nil && *was > 0:
			all = append(all, *is / *was)
		}
	}
	return study.SpreadOf(all)
}

// Table is a row for each variant.
func (r rows) Table() (out []string) {
	p50, p99 := func(p point) *float64 { return p.P50 }, func(p point) *float64 { return p.P99 }
	for _, v := range variants {
		over, batched := r.of(v.name, true, p99), r.of(v.name, false, func(p point) *float64 { return &p.Batch })
		if over.Rounds == 0 {
			out = append(out, study.Row(v.name, "-", "-", "-", "-", "-", r.refused(v.name)))
			continue
		}
		usedCPUs := r.of(v.name, false, func(p point) *float64 { return &p.UsedCPUs })
		out = append(out, study.Row(v.name, short(r.of(v.name, false, p50).Median), short(r.of(v.name, false, p99).Median),
			fmt.Sprintf("%s (%s to %s)", short(over.Median), short(over.Low), short(over.High)), fmt.Sprintf("%.2f", usedCPUs.Median),
			fmt.Sprintf("%.2f", batched.Median), ""))
	}
	return out
}

// refused is why a variant was not put in force; "": it was.
func (r rows) refused(name string) string {
	for _, p := range r.pieces {
		for _, q := range p.Points {
			if q.Variant == name && q.Refused != "" {
				why := q.Refused
				if i := strings.LastIndex(why, `": `); i >= 0 { // behind the path of a cgroup
					why = why[i+len(`": `):]
				}
				return fmt.Sprintf("refused: %.200s", why)
			}
		}
	}
	return "not measured"
}

// inShort is a row for each variant that was measured: over all services.
func inShort(all []rows) (out []string) {
	for _, v := range variants[1:] {
		var over, batched []float64
		for _, r := range all {
			if s := r.of(v.name, true, func(p point) *float64 { return p.P99 }); s.Rounds > 0 {
				over = append(over, s.Median)
				batched = append(batched, r.of(v.name, false, func(p point) *float64 { return &p.Batch }).Median)
			}
		}
		if len(over) == 0 {
			continue
		}
		o, b := study.SpreadOf(over), study.SpreadOf(batched)
		out = append(out, study.Row(v.name, fmt.Sprintf("%s (%s to %s)", short(o.Median), short(o.Low), short(o.High)),
			fmt.Sprintf("%.2f (%.2f to %.2f)", b.Median, b.Low, b.High)))
	}
	return out
}

func short(v float64) string { return fmt.Sprintf("%.3g", v) }

// page is docs/results/secondary.md of all pieces.
func page(all []piece) string {
	var of []rows
	for _, name := range served {
		if pieces := slices.DeleteFunc(slices.Clone(all), func(p piece) bool { return p.Service != name }); len(pieces) > 0 {
			of = append(of, rows{pieces})
		}
	}
	return study.Fill(pageText, nil, map[string]any{"Rows": of, "InShort": inShort(of)})
}
