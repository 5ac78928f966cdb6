package forecast

import (
	"math"
)

const (
	// limitSteps is how often bisect halves the range of limits: to 1/64 of it.
	limitSteps = 6
	// limitSeeds is the number of runs per limit: its interval needs more than a load of a sweep.
	limitSeeds = 3
	// mostLimit is the largest limit tried, as a multiple of the mean use or the limit.
	mostLimit = 4.0
)

// smallest finds the smallest limit that keeps the objective in Coverage of cases, the smallest one that may, and the
// least number of CPUs that keeps it as the container's width without a quota.
//
// Worked example: an objective of p99<20ms. At 0.16 CPUs the forecast's p99 is 18 ms (14 to 31 ms), at 0.21 CPUs 15 ms
// (12 to 19 ms): the smallest limit that does is 0.21 CPUs. At 0.14 CPUs it is 27 ms (20 to 40 ms): the range is from
// 0.14 to 0.21.
func (m *maker) smallest() error {
	mean := m.l.recorded.cpu.Seconds() / m.l.window.Seconds()
	most := math.Min(float64(m.f.CPUs), mostLimit*math.Max(m.l.limit, mean))
	limited := func(surely bool) func(float64) (bool, error) {
		return func(cpus float64) (bool, error) {
			return m.holds(Remedy{Name: Raise, Factor: cpus / m.l.limit}, surely)
		}
	}
	limit, err := bisect(most, limited(true))
	if err != nil {
		return err
	}
	if limit != nil {
		may, err := bisect(*limit, limited(false))
		if err != nil {
			return err
		}
		if may == nil { // by chance
			may = limit
		}
		m.f.SmallestLimit, m.f.SmallestRange = limit, &Range{*may, *limit}
	}
	low, high := 0, m.f.CPUs
	if ok, err := m.holds(Remedy{Name: Narrow, CPUs: high}, true); err != nil || !ok {
		return err
	}
	for high-low > 1 {
		mid := (low + high) / 2
		switch ok, err := m.holds(Remedy{Name: Narrow, CPUs: mid}, true); {
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

// bisect finds the least value up to most that holds, exact to most/64. It assumes that larger values hold
// too. nil: most does not hold.
func bisect(most float64, holds func(float64) (bool, error)) (*float64, error) {
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

// holds reports whether a remedy keeps the objective, or without one is no worse than the recording: surely, at the far
// end of the forecast's interval, or else at its near end.
func (m *maker) holds(r Remedy, surely bool) (bool, error) {
	var trials []trial
	for seed := range min(limitSeeds, m.o.Seeds) {
		trials = append(trials, trial{remedy: r, load: 1, seed: m.o.Seed + uint64(seed)})
	}
	results, err := m.trials(trials)
	if err != nil || results[0].refused != nil || collapsed(results) {
		return false, err
	}
	end := func(r *Range) float64 {
		if surely {
			return r.High
		}
		return r.Low
	}
	var latency *Range
	if m.f.Judged != nil {
		latency = m.latencyRange(results, r)
	}
	if o := m.o.Objective; o != nil {
		return latency != nil && end(latency) <= milliseconds(o.Bound), nil
	}
	was := m.f.Rows[0].Error // of "none", which is the recording
	stopped := spread(results, func(r *result) *float64 { return new(r.stopped.Seconds()) })
	if end(stopped) > math.Max(was.Stopped.High, negligibleStopped*m.l.window.Seconds()) {
		return false, nil
	}
	// The figure itself and not its error: that of the recording is part of the comparison already.
	is := spread(results, func(r *result) *float64 { return m.ofRuns([]result{*r}) })
	before := m.f.Rows[0].JudgedRange
	return is == nil || before == nil || end(is) <= before.High, nil
}
