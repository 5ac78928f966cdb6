package forecast

import (
	"math"
	"slices"
)

const (
	// loadsTried are the factors between the least and the greatest, both included.
	loadsTried = 9
	// sweepSeeds is how many runs each of them is the sum of: fewer than a row's, for there are many.
	sweepSeeds = 2
	// refinements is how often the range between two of them, in which a row breaks, is halved.
	refinements = 4
	// leftOver is the share of the CPU time asked for that must be left at the end for a collapse: more comes than goes.
	leftOver = 0.05
	// limitSteps is how often the range of limits is halved: to 1/64 of it.
	limitSteps = 6
	// mostLimit is the largest limit tried, as a multiple of the mean use or the limit.
	mostLimit = 4.0
)

// factors are the loads to try, each as much larger than the one before.
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

// edge is the load at which something changes for a row: above low, and not above high.
type edge struct {
	remedy    Remedy
	low, high float64
	beyond    func([]Result) bool // whether a load is behind it
	into      **float64
}

// sweep finds for each row at the recorded load of the host where it breaks, and where it collapses.
func (m *maker) sweep() error {
	var rows []*Row
	for i := range m.f.Rows {
		if row := &m.f.Rows[i]; row.HostLoad == 0 && row.Refused == "" {
			rows = append(rows, row)
		}
	}
	factors := m.o.factors()
	all, err := m.loaded(len(rows)*len(factors), func(i int) (Remedy, float64) {
		return rows[i/len(factors)].Remedy, factors[i%len(factors)]
	})
	if err != nil {
		return err
	}
	var edges []*edge
	for i, row := range rows {
		tried := all[i*len(factors) : (i+1)*len(factors)]
		for _, e := range []*edge{
			{beyond: func(r []Result) bool { return !m.keeps(r) }, into: &row.BreaksAt},
			{beyond: collapsed, into: &row.CollapsesAt},
		} {
			at := slices.IndexFunc(tried, e.beyond)
			switch {
			case at == 0:
				*e.into = new(factors[0])
			case at > 0:
				e.remedy, e.low, e.high = row.Remedy, factors[at-1], factors[at]
				edges = append(edges, e)
			}
		}
	}
	return m.refine(edges)
}

// refine halves the ranges of edges, all at once.
func (m *maker) refine(edges []*edge) error {
	for range refinements {
		middle := func(e *edge) float64 { return math.Sqrt(e.low * e.high) }
		all, err := m.loaded(len(edges), func(i int) (Remedy, float64) { return edges[i].remedy, middle(edges[i]) })
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
		*e.into = new(e.high)
	}
	return nil
}

// loaded runs n remedies, each at a load.
func (m *maker) loaded(n int, at func(i int) (Remedy, float64)) ([][]Result, error) {
	seeds := min(sweepSeeds, m.o.Seeds)
	var trials []Trial
	for i := range n {
		remedy, load := at(i)
		for seed := range seeds {
			trials = append(trials, Trial{Remedy: remedy, Load: load, Seed: m.o.Seed + uint64(seed)})
		}
	}
	results, err := m.trials(trials)
	return slices.Collect(slices.Chunk(results, seeds)), err
}

// collapsed says whether work is left over at the end that should have been done.
func collapsed(results []Result) bool {
	return median(results, func(r *Result) float64 {
		return float64(r.Unfinished) / math.Max(1, float64(r.Demand))
	}) > leftOver
}

// smallest finds the smallest limit that keeps the objective, or what there is where there is none; and the least number
// of CPUs that does where the container is never wider than that and has no quota.
func (m *maker) smallest() error {
	mean := m.l.Recorded.CPU.Seconds() / m.l.Window.Seconds()
	most := math.Min(float64(m.f.CPUs), mostLimit*math.Max(m.l.Limit, mean))
	limit, err := halve(most, func(cpus float64) (bool, error) {
		return m.holds(Remedy{Name: Raise, Factor: cpus / m.l.Limit})
	})
	if err != nil {
		return err
	}
	m.f.SmallestLimit = limit
	low, high := 0, m.f.CPUs
	if ok, err := m.holds(Remedy{Name: Narrow, CPUs: high}); err != nil || !ok {
		return err
	}
	for high-low > 1 {
		mid := (low + high) / 2
		switch ok, err := m.holds(Remedy{Name: Narrow, CPUs: mid}); {
		case err != nil:
			return err
		case ok:
			high = mid
		default:
			low = mid
		}
	}
	m.f.SmallestNarrow = new(float64(high))
	return nil
}

// halve finds the least value up to most that holds, to most/64: a larger one is taken to be no worse. nil: most does not.
func halve(most float64, holds func(float64) (bool, error)) (*float64, error) {
	ok, err := holds(most)
	if err != nil || !ok {
		return nil, err
	}
	low, high := 0.0, most
	for range limitSteps {
		mid := (low + high) / 2
		switch ok, err := holds(mid); {
		case err != nil:
			return nil, err
		case ok:
			high = mid
		default:
			low = mid
		}
	}
	return &high, nil
}

// holds says whether a remedy keeps the objective; without one, whether it is no worse than it was recorded.
func (m *maker) holds(r Remedy) (bool, error) {
	var trials []Trial
	for seed := range min(sweepSeeds, m.o.Seeds) {
		trials = append(trials, Trial{Remedy: r, Load: 1, Seed: m.o.Seed + uint64(seed)})
	}
	results, err := m.trials(trials)
	if err != nil || results[0].Refused != nil || collapsed(results) {
		return false, err
	}
	return m.keeps(results), nil
}

// keeps says whether runs keep the objective; without one, whether they are no worse than what was recorded.
func (m *maker) keeps(results []Result) bool {
	if m.o.Objective != nil {
		return m.meets(results)
	}
	stopped := median(results, func(r *Result) float64 { return r.Stopped.Seconds() })
	was := m.f.Rows[0].Error // of "none", as recorded
	if stopped > math.Max(was.Stopped.High, harmless*m.l.Window.Seconds()) {
		return false
	}
	p99 := m.l.summed(results, "").Response.Quantile(0.99)
	return p99 == nil || was.P99 == nil || *p99 <= was.P99.High
}
