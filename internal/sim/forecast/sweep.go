package forecast

import (
	"math"
	"slices"
)

const (
	// loadsTried is the number of factors from the least to the greatest, both included.
	loadsTried = 9
	// sweepSeeds is the number of runs per load. A sweep has many loads, so it is less than for a row.
	sweepSeeds = 2
	// refinements is how often the sweep halves the range between two tried loads in which a row breaks.
	refinements = 4
	// collapseShare is the share of the demanded CPU time that must be left at the end for a collapse.
	collapseShare = 0.05
)

// factors returns the loads to try, in equal ratios.
func (o *Options) factors() []float64 {
	if o.From == o.To {
		return []float64{o.From}
	}
	var all []float64
	for i := range loadsTried {
		all = append(all, o.From*math.Pow(o.To/o.From, float64(i)/(loadsTried-1)))
	}
	return all
}

// edge is the load at which a row breaks or collapses: above low, and not above high.
type edge struct {
	remedy    Remedy
	low, high float64
	beyond    func([]result) bool // whether these results lie beyond the edge
	target    **float64
}

// sweep finds the loads at which each row at the recorded load of the host breaks and collapses.
func (m *maker) sweep() error {
	var rows []*Row
	for i := range m.f.Rows {
		if row := &m.f.Rows[i]; row.HostLoad == 0 && row.Refused == "" {
			rows = append(rows, row)
		}
	}
	factors := m.o.factors()
	all, err := m.runLoads(len(rows)*len(factors), func(i int) (Remedy, float64) {
		return rows[i/len(factors)].Remedy, factors[i%len(factors)]
	})
	if err != nil {
		return err
	}
	var edges []*edge
	for i, row := range rows {
		tried := all[i*len(factors) : (i+1)*len(factors)]
		for _, e := range []*edge{
			{beyond: func(r []result) bool { return !m.keeps(r) }, target: &row.BreaksAt},
			{beyond: collapsed, target: &row.CollapsesAt},
		} {
			at := slices.IndexFunc(tried, e.beyond)
			switch {
			case at == 0:
				*e.target = new(factors[0])
			case at > 0:
				e.remedy, e.low, e.high = row.Remedy, factors[at-1], factors[at]
				edges = append(edges, e)
			}
		}
	}
	return m.refine(edges)
}

// refine halves the ranges of all edges together.
func (m *maker) refine(edges []*edge) error {
	for range refinements {
		middle := func(e *edge) float64 { return math.Sqrt(e.low * e.high) }
		all, err := m.runLoads(len(edges), func(i int) (Remedy, float64) { return edges[i].remedy, middle(edges[i]) })
		if err != nil {
			return err
		}
		for i, e := range edges {
			if e.beyond(all[i]) {
				e.high = middle(e)
			} else {
				e.low = middle(e)
			}
		}
	}
	for _, e := range edges {
		*e.target = new(e.high)
	}
	return nil
}

// runLoads runs n remedies, each at a load.
func (m *maker) runLoads(n int, at func(i int) (Remedy, float64)) ([][]result, error) {
	seeds := min(sweepSeeds, m.o.Seeds)
	var trials []trial
	for i := range n {
		remedy, load := at(i)
		for seed := range seeds {
			trials = append(trials, trial{remedy: remedy, load: load, seed: m.o.Seed + uint64(seed)})
		}
	}
	results, err := m.trials(trials)
	return slices.Collect(slices.Chunk(results, seeds)), err
}

// collapsed reports whether too much work is left at the end.
func collapsed(results []result) bool {
	return median(results, func(r *result) float64 {
		return float64(r.unfinished) / math.Max(1, float64(r.demand))
	}) > collapseShare
}

// keeps reports whether runs keep the objective, or without one are no worse than the recording.
func (m *maker) keeps(results []result) bool {
	if m.o.Objective != nil {
		return m.meets(results)
	}
	// A part of the time: with more load what was recorded comes in less time.
	stopped := median(results, func(r *result) float64 { return r.stopped.Seconds() / max(1, r.length).Seconds() })
	was := m.f.Rows[0].Error // of "none", which is the recording
	if stopped > math.Max(was.Stopped.High/m.l.window.Seconds(), negligibleStopped) {
		return false
	}
	now := m.l.mergedTimes(results, "").Response.Quantile(m.objective().Quantile)
	return now == nil || was.judged == nil || *now <= was.judged.High
}
