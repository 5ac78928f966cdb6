package forecast

import (
	"math"
)

const (
	// loadsTried are the factors between the least and the greatest, both included.
	loadsTried = 9
	// sweepSeeds is how many runs each of them is the sum of: fewer than a row's, for there are many.
	sweepSeeds = 2
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

// sweep finds for each row at the recorded load of the host where it breaks.
func (m *maker) sweep() error {
	factors := m.o.factors()
	seeds := min(sweepSeeds, m.o.Seeds)
	var trials []Trial
	var rows []*Row
	for i := range m.f.Rows {
		row := &m.f.Rows[i]
		if row.HostLoad != 0 || row.Refused != "" {
			continue
		}
		rows = append(rows, row)
		for _, load := range factors {
			for seed := range seeds {
				trials = append(trials, Trial{Remedy: row.Remedy, Load: load, Seed: m.o.Seed + uint64(seed)})
			}
		}
	}
	all, err := m.trials(trials)
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, load := range factors {
			results := all[:seeds]
			all = all[seeds:]
			if row.BreaksAt == nil && !m.meets(results) {
				row.BreaksAt = new(load)
			}
			if row.CollapsesAt == nil && collapsed(results) {
				row.CollapsesAt = new(load)
			}
		}
	}
	return nil
}

// collapsed says whether work is left over at the end that should have been done.
func collapsed(results []Result) bool {
	return median(results, func(r *Result) float64 {
		return float64(r.Unfinished) / math.Max(1, float64(r.Demand))
	}) > leftOver
}

// smallest finds the smallest limit that keeps the objective, by halving: a larger limit is taken to be no worse. By
// narrow it is a whole number of CPUs.
func (m *maker) smallest() error {
	mean := m.l.Recorded.CPU.Seconds() / m.l.Window.Seconds()
	high := math.Min(float64(m.f.CPUs), mostLimit*math.Max(m.l.Limit, mean)) / m.l.Limit
	try := func(factor float64) (bool, error) {
		trial := Trial{Remedy: Remedy{Name: Raise, Factor: factor}, Load: 1}
		return m.holds(trial)
	}
	ok, err := try(high)
	if err != nil || !ok {
		return err
	}
	low := 0.0
	for range limitSteps {
		mid := (low + high) / 2
		ok, err := try(mid)
		switch {
		case err != nil:
			return err
		case ok:
			high = mid
		default:
			low = mid
		}
	}
	m.f.SmallestLimit = new(high * m.l.Limit)
	return nil
}

// holds says whether a remedy keeps the objective.
func (m *maker) holds(t Trial) (bool, error) {
	seeds := min(sweepSeeds, m.o.Seeds)
	var trials []Trial
	for seed := range seeds {
		t.Seed = m.o.Seed + uint64(seed)
		trials = append(trials, t)
	}
	results, err := m.trials(trials)
	if err != nil || results[0].Refused != nil {
		return false, err
	}
	return m.meets(results) && !collapsed(results), nil
}
