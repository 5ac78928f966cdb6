package forecast

import (
	"math"

	"github.com/unthrottle/unthrottle/bandwidth"
)

const (
	// limitSteps is how many limits are tried at most, in equal steps.
	limitSteps = 64
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
	step := m.mostCPUs() / limitSteps
	limits, err := least(limitSteps, func(i int) (verdict, error) {
		return m.holds(m.raisedTo(float64(i+1) * step))
	})
	if err != nil {
		return err
	}
	if at := limits.surely; at >= 0 {
		limit := float64(at+1) * step
		m.f.SmallestLimit, m.f.SmallestRange = &limit, &Range{float64(limits.may+1) * step, limit}
	}
	narrow, err := least(m.f.CPUs, func(i int) (verdict, error) { return m.holds(Remedy{Name: Narrow, CPUs: i + 1}) })
	if err != nil {
		return err
	}
	if narrow.surely >= 0 {
		m.f.SmallestNarrow = new(float64(narrow.surely + 1))
	}
	return nil
}

// raisedTo is the quota of so many CPUs. A burst that is in force stays, unless the quota is less: the kernel takes no burst above it.
func (m *maker) raisedTo(cpus float64) Remedy {
	l := m.l.recordedScenario.Cgroups[m.l.binding].Limit
	if l.Burst > bandwidth.QuotaOf(cpus, l.Period) {
		return Remedy{Name: Limit, Limit: cpus}
	}
	return Remedy{Name: Raise, Factor: cpus / m.l.limit}
}

// mostCPUs is the largest limit that a search tries.
func (m *maker) mostCPUs() float64 {
	return math.Min(float64(m.f.CPUs), mostLimit*math.Max(m.l.limit, m.meanUse()))
}

// meanUse is how many CPUs the container used as recorded.
func (m *maker) meanUse() float64 { return m.l.recorded.cpu.Seconds() / m.l.window.Seconds() }

// few runs a remedy as often as a search does.
func (m *maker) few(r Remedy) ([]result, error) {
	var trials []trial
	for seed := range min(limitSeeds, m.o.Seeds) {
		trials = append(trials, trial{remedy: r, load: 1, seed: m.o.Seed + uint64(seed)})
	}
	return m.trials(trials)
}

// holds tells whether a remedy keeps the objective, or without one is no worse than the recording.
func (m *maker) holds(r Remedy) (verdict, error) {
	results, err := m.few(r)
	if err != nil || results[0].refused != nil || collapsed(results) {
		return verdict{}, err
	}
	within := func(r *Range, most float64) verdict {
		return verdict{may: r.Low <= most, is: r.High <= most, surely: r.High <= most}
	}
	if o := m.o.Objective; o != nil {
		if m.f.Judged == nil {
			return verdict{}, nil
		}
		latency := m.latencyRange(results, r)
		if latency == nil {
			return verdict{}, nil
		}
		return within(latency, milliseconds(o.Bound)), nil
	}
	was := m.f.Rows[0].Error // of "none", which is the recording
	stopped := spread(results, func(r *result) *float64 { return new(r.stopped.Seconds()) })
	v := within(stopped, math.Max(was.Stopped.High, negligibleStopped*m.l.window.Seconds()))
	// The figure itself and not its error: that of the recording is part of the comparison already.
	is := spread(results, func(r *result) *float64 { return m.ofRuns([]result{*r}) })
	if before := m.f.Rows[0].JudgedRange; is != nil && before != nil {
		slow := within(is, before.High)
		v = verdict{v.may && slow.may, v.is && slow.is, v.surely && slow.surely}
	}
	return v, nil
}
