package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/test/study"
)

//go:embed page.md
var pageText string

// page is docs/results/published.md.
func page(all []piece, expiring []slicesPiece) string {
	return study.Fill(pageText, nil, content{all, expiring})
}

// content is what the page's template is filled with.
type content struct {
	All      []piece
	Expiring []slicesPiece
}

// Rows are those of the variants that have run.
func (c content) Rows() (rows []string) {
	for _, v := range variants {
		of := func(pick func(piece) *float64) string {
			var values []float64
			for _, p := range c.All {
				if value := pick(p); p.Variant == v && value != nil {
					values = append(values, *value)
				}
			}
			return spread(values, 1)
		}
		var throttled []string
		for _, p := range c.All {
			switch {
			case p.Variant != v:
			case v.Quota:
				throttled = append(throttled, fmt.Sprintf("%d of %d", p.Throttled, p.Periods))
			default:
				throttled = append(throttled, "-")
			}
		}
		if len(throttled) == 0 {
			continue
		}
		threads := v.Threads
		if threads == "" {
			threads = "Go's own"
		}
		rows = append(rows, study.Row(threads, v.hold(), strings.Join(throttled, ", "), of(func(p piece) *float64 { return p.P50 }),
			of(func(p piece) *float64 { return p.P90 }), of(func(p piece) *float64 { return p.P99 }),
			of(func(p piece) *float64 { return p.Longest }), of(func(p piece) *float64 { return &p.UsedCPUs })))
	}
	return rows
}

// spread is a median, with its range where there are several rounds; "-": there is none.
func spread(values []float64, decimals int) string {
	s := study.SpreadOf(values)
	switch s.Rounds {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf("%.*f", decimals, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", decimals, s.Median, decimals, s.Low, decimals, s.High)
}

// SlicesRows are those of the kernels that have run.
func (c content) SlicesRows() (rows []string) {
	for _, h := range slicesHosts {
		for _, k := range slicesKernels {
			var throttled []string
			var p50, p99, longest, used []float64
			var quota float64
			for _, p := range c.Expiring {
				if p.Kernel != k.name || p.HostCPUs != h.cpus {
					continue
				}
				quota = p.Quota
				throttled = append(throttled, fmt.Sprintf("%d of %d", p.Throttled, p.Periods))
				used = append(used, p.UsedCPUs)
				for _, of := range []struct {
					value *float64
					to    *[]float64
				}{{p.P50, &p50}, {p.P99, &p99}, {p.Longest, &longest}} {
					if of.value != nil {
						*of.to = append(*of.to, *of.value)
					}
				}
			}
			if len(throttled) > 0 {
				rows = append(rows, study.Row(h.cpus, h.k, k.name, quota, spread(used, 2), strings.Join(throttled, ", "), spread(p50, 1),
					spread(p99, 1), spread(longest, 1)))
			}
		}
	}
	return rows
}

// FirstSlices is a run, for what all have in common; nil: there is none.
func (c content) FirstSlices() *slicesPiece {
	if len(c.Expiring) == 0 {
		return nil
	}
	return &c.Expiring[0]
}

// Missing are the variants that have not run.
func (c content) Missing() string {
	var names []string
	for _, v := range variants {
		ran := false
		for _, p := range c.All {
			ran = ran || p.Variant == v
		}
		if !ran {
			names = append(names, v.String())
		}
	}
	return strings.Join(names, "; ")
}

// First is a run, for what all have in common; nil: there is none.
func (c content) First() *piece {
	if len(c.All) == 0 {
		return nil
	}
	return &c.All[0]
}

// Limits and numbers of the experiment, as the page says them.
func (content) Burning() int  { return burning }
func (content) HostCPUs() int { return hostCPUs }
