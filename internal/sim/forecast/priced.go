package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
	"github.com/unthrottle/unthrottle/internal/objective"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Priced is the least number of CPUs with which a remedy is no worse than the recording, or keeps the objective: in
// the judged latency, in its median, and in the CPU time that the container gets done.
type Priced struct {
	// Remedy has its settings at CPUs; where there are none those at the recorded limit.
	Remedy Remedy
	// CPUs are the limit, or the CPUs of a pin. Of other shards they are those of one shard as recorded. nil: see
	// Why.
	CPUs *float64
	// Low is the least number that may do, High the least that does in Coverage of other times; nil: none tried does.
	Low, High *float64
	// Judged is the figure of Forecast.Judged at CPUs in milliseconds, and Bound what it had to keep.
	Judged, Bound *float64
	// Why says why there are none; "": there are.
	Why string
}

// priceSeeds is in how many phases Price runs each setting. Its draws are of moments too, so that few phases suffice.
const priceSeeds = 2

// Price makes a forecast of a recording for its Priced alone, in as few replays as that needs: it has no rows but leaving it,
// no quota, and settings of the service. schedExt and each are those of Options. An objective is of requests: where the
// recording does not show enough of them to tell its quantile, what is found is for the latency as recorded.
func Price(l *Load, schedExt bool, goal objective.Objective, each func(n int, do func(i int) error) error) (*Forecast, error) {
	o := Options{Seeds: priceSeeds, Seed: 1, Effects: []*Effect{WeightEffect}, SchedExt: schedExt, Price: true, Each: each}
	if goal != (objective.Objective{}) && len(l.kinds()) > 0 && stats.Tellable(len(l.requests), l.window, goal.Quantile) == goal.Quantile {
		o.Objective = &Objective{Objective: goal}
	}
	return Make(l, o)
}

const (
	// pricedSteps is how many limits are tried between a limit and twice that: they are 2.2 % apart.
	pricedSteps = 32
	// slowerMedian is the factor by which the median may grow, and leastMedianMs a difference that is none.
	slowerMedian, leastMedianMs = 1.1, 0.1
	// leastShared is the share of the work that other threads must be able to take, where shards are modelled.
	leastShared = 0.9
)

// toPrice is a remedy to find the least CPUs of.
type toPrice struct {
	name string
	// whole: it comes in whole CPUs, those of a core together.
	whole bool
	// at is the remedy with so many CPUs.
	at func(l *Load, cpus float64) Remedy
	// saves is what it saves CPU time in; nil: it saves none.
	saves func(l *Load, r Remedy) bucket
	// why says why it is none of this recording; nil, or "": it is one.
	why func(m *maker) string
	// period is a longer one than a container's; of one that has no shorter one it is not priced. 0: it has that of the container.
	period time.Duration
}

// burstIn is a burst of one quota in a period; 0: that of the container.
func burstIn(period time.Duration) toPrice {
	limit := func(l *Load, cpus float64) bandwidth.Limit {
		own := l.recordedScenario.Cgroups[l.binding].Limit.Period
		lower := bandwidth.Limit{Quota: bandwidth.QuotaOf(cpus, own), Period: own}.In(cmp.Or(period, own)) // a burst is no more than that
		lower.Burst = lower.Quota
		return lower
	}
	return toPrice{name: Burst, period: period,
		at: func(l *Load, cpus float64) Remedy {
			return Remedy{Name: Burst, Limit: cpus, Burst: limit(l, cpus).Burst, Period: period}
		},
		saves: func(l *Load, r Remedy) bucket { return quotaBucket(limit(l, r.Limit)) },
		why: func(m *maker) string {
			if m.l.window.Round(period) < MeasuredPeriods*period { // a recording ends with its last event
				return fmt.Sprintf("the recording has fewer than %d of its periods of %v", MeasuredPeriods, period)
			}
			return ""
		}}
}

// priceable are the remedies in the order of Forecast.Priced: longer periods last, so that they are what is left out where the time is up.
var priceable = append([]toPrice{
	{name: Limit, at: func(_ *Load, cpus float64) Remedy { return Remedy{Name: Limit, Limit: cpus} }},
	burstIn(0),
	{name: Narrow, at: func(_ *Load, cpus float64) Remedy {
		return Remedy{Name: Narrow, Limit: cpus, Credit: creditOf(cpus)}
	}, saves: func(_ *Load, r Remedy) bucket { return creditBucket(r.Limit, r.Credit) },
		why: func(m *maker) string {
			if m.o.SchedExt {
				return ""
			}
			return "this kernel cannot narrow by sched_ext"
		}},
	{name: Pin, whole: true, at: func(_ *Load, cpus float64) Remedy { return Remedy{Name: Pin, CPUs: int(cpus)} }},
	{name: Pools, at: func(_ *Load, cpus float64) Remedy {
		return Remedy{Name: Pools, Limit: cpus, CPUs: int(math.Ceil(cpus)), Pool: AllPools}
	}, why: func(m *maker) string {
		if len(m.l.resized()) > 0 {
			return ""
		}
		return "no pool whose work any of its threads could take has more threads than the limit has CPUs"
	}},
	{name: Budget, at: func(_ *Load, cpus float64) Remedy {
		return Remedy{Name: Budget, Limit: cpus, CPUs: int(math.Ceil(cpus))}
	}, why: func(m *maker) string { return m.l.noBudget() }},
	{name: Shards, at: func(_ *Load, cpus float64) Remedy { return Remedy{Name: Shards, Limit: cpus, Factor: 0.5} },
		why: func(m *maker) string {
			if shared := m.l.shared(); shared < leastShared {
				return fmt.Sprintf("only %.0f %% of the work is of pools whose threads could all take it", 100*shared)
			}
			return ""
		}},
}, longBursts()...)

func longBursts() (all []toPrice) {
	for _, period := range LongPeriods {
		all = append(all, burstIn(period))
	}
	return all
}

// Priceable are the names of the remedies of Forecast.Priced, in their order.
func Priceable() (names []string) {
	for _, p := range priceable {
		if p.period == 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// shared is the share of the work of pools whose threads could all take it.
func (l *Load) shared() float64 {
	shared, all := 0.0, 0.0
	for _, p := range l.Pools {
		work := l.work(p).Seconds()
		if all += work; l.sharesWork(p) {
			shared += work
		}
	}
	return shared / math.Max(all, 1e-9)
}

// price finds the least CPUs of each remedy. If the time is up, what is left says so.
//
// Worked example: 8 threads wake together every 250 ms for 8 ms each, under a limit of 0.5 CPUs; p99 is 105 ms. By the
// quota alone it stays so from 0.34 CPUs on. A burst needs the 0.26 CPUs that are used on average. A pin needs
// six CPUs, because the median of 8 ms must stay too.
func (m *maker) price() error {
	const timeUp = "the time was up"
	late := false
	for _, p := range priceable {
		if p.period > 0 && p.period <= m.l.recordedScenario.Cgroups[m.l.binding].Limit.Period {
			continue
		}
		row := Priced{Remedy: p.at(m.l, m.l.limit)}
		if p.whole {
			row.Remedy = p.at(m.l, math.Ceil(m.l.limit))
		}
		switch {
		case m.f.Judged == nil:
			row.Why = m.f.TooFew()
		case p.why != nil:
			row.Why = p.why(m)
		}
		if row.Why == "" && late {
			row.Why = timeUp
		}
		if row.Why == "" {
			done, err := m.priced(p, row)
			if late = errors.Is(err, context.DeadlineExceeded); late {
				m.leftOut("the search for the least CPUs of " + p.name + " and of what follows it is left out")
				done, err = row, nil
				done.Why = timeUp
			}
			if err != nil {
				return err
			}
			row = done
		}
		m.f.Priced = append(m.f.Priced, row)
	}
	return nil
}

// priced finds the least CPUs of one remedy.
func (m *maker) priced(p toPrice, row Priced) (Priced, error) {
	values, why := m.candidates(p)
	if len(values) == 0 {
		row.Why = why
		return row, nil
	}
	none, err := m.asIs(Remedy{Name: None})
	base := none
	if err == nil && row.Remedy.Modelled() {
		// Of the same model, with the recorded threads: what it leaves out is then missing on both sides.
		base, err = m.asIs(Remedy{Name: Shards, Factor: 1})
	}
	switch {
	case err != nil:
		return row, err
	case none.high == nil || base.high == nil:
		row.Why = "nothing that is judged came"
		return row, nil
	}
	row.Bound = none.high
	most := toleratedP99
	if o := m.o.Objective; o != nil {
		row.Bound = new(milliseconds(o.Bound))
		most = *row.Bound / *none.high
	}
	factors := make([]float64, len(values))
	found, err := least(len(values), func(i int) (v verdict, err error) {
		r := p.at(m.l, values[i])
		results, err := m.anyPhase(r)
		if err != nil || results[0].refused != nil {
			return verdict{}, err
		}
		v, factors[i] = m.comparedWith(base, m.measured(results, r), most)
		if p.saves != nil {
			v = v.and(m.inLongTime(p.saves(m.l, r), (most-1)**none.high))
		}
		return v, nil
	})
	if err != nil {
		return row, err
	}
	cpus := func(i int) *float64 {
		if i < 0 {
			return nil
		}
		return &values[i]
	}
	row.CPUs, row.Low, row.High = cpus(found.is), cpus(found.may), cpus(found.surely)
	if row.CPUs == nil {
		row.Why = fmt.Sprintf("%s with %.3g CPUs, the most that were tried", m.falls(), values[len(values)-1])
		return row, nil
	}
	row.Remedy, row.Judged = p.at(m.l, *row.CPUs), new(factors[found.is]**none.high)
	return row, nil
}

// inLongTime tells whether a bucket makes the judged latency longer by no more than so many milliseconds in a long time, and
// with the mean load that other times may have, than the limit does now.
func (m *maker) inLongTime(b bucket, longer float64) verdict {
	o := &m.l.offered
	longer += o.delay(quotaBucket(m.l.recordedScenario.Cgroups[m.l.binding].Limit), 1, m.f.Judged.Quantile)
	at := func(busier float64) bool { return o.delay(b, max(0, 1+busier*o.chance), m.f.Judged.Quantile) <= longer }
	return verdict{may: at(-surelyBusier), is: at(0), surely: at(surelyBusier)}
}

// falls says what a remedy that has no least CPUs does.
func (m *maker) falls() string {
	if m.o.Objective != nil {
		return "it misses the objective"
	}
	return "it is slower than recorded"
}

// candidates are the CPUs to try for a remedy, ascending; the text says why there are none. Below what the container
// uses on average none is tried: it could not do its work.
func (m *maker) candidates(p toPrice) (values []float64, why string) {
	add := func(cpus float64) {
		if cpus < (1-collapseShare)*m.meanUse() {
			return
		}
		if _, err := m.l.scenarioWith(p.at(m.l, cpus)); err != nil {
			why = err.Error()
			return
		}
		values = append(values, cpus)
	}
	if p.whole {
		step := m.l.coreThreads
		for cpus := step; cpus <= m.f.CPUs; cpus += step {
			add(float64(cpus))
		}
		return values, why
	}
	least, most := math.Max(m.meanUse(), 0.01), m.mostCPUs()
	for k := math.Floor(pricedSteps * math.Log2((1-collapseShare)*least/m.l.limit)); ; k++ {
		cpus := m.l.limit * math.Exp2(k/pricedSteps)
		if cpus > most {
			return values, why
		}
		add(cpus)
	}
}

// pricedSeeds is the number of runs per remedy and CPUs, each with another phase of the periods: what is asked for is
// the least CPUs of other days, not of these phases.
const pricedSeeds = 5

// anyPhase runs a remedy in several phases.
func (m *maker) anyPhase(r Remedy) ([]result, error) {
	var trials []trial
	for seed := range min(pricedSeeds, m.o.Seeds) {
		trials = append(trials, trial{remedy: r, load: 1, seed: m.o.Seed + uint64(seed), anyPhase: true})
	}
	return m.trials(trials)
}

// asIs are such runs of what changes nothing.
func (m *maker) asIs(r Remedy) (measured, error) {
	if known, ok := m.unchanged[r.Name]; ok {
		return known, nil
	}
	results, err := m.anyPhase(r)
	if err != nil {
		return measured{}, err
	}
	if m.unchanged == nil {
		m.unchanged = map[string]measured{}
	}
	m.unchanged[r.Name] = m.measured(results, r)
	return m.unchanged[r.Name], nil
}

// measured is what runs are compared by. Of runs whose threads are modelled the latency is that of the pool that
// answers.
type measured struct {
	high, median *float64  // the judged quantile and the median, in milliseconds; nil: nothing came
	draws        []float64 // the judged quantile of each draw of otherTimes, or else of each run
	cpu          float64   // seconds that one container got done
}

func (m *maker) measured(results []result, r Remedy) (is measured) {
	j := m.f.Judged
	is.cpu = median(results, func(r *result) float64 { return r.cpu.Seconds() })
	if r.Name == Shards {
		is.cpu *= r.Factor
	}
	if j.Of == OfRequests && len(results[0].requests) > 0 {
		in, answers := m.l.requestTimes(results, m.which)
		is.high, is.median = new(quantileOf(answers, j.Quantile)), new(quantileOf(answers, 0.5))
		is.draws = drawn(in, answers, j.Quantile)
		return is
	}
	pool := j.Pool
	if j.Of == OfRequests {
		pool = m.answering()
	}
	at := func(results []result, q float64) *float64 {
		return Objective{Objective: objective.Objective{Quantile: q}}.quantile(m.l.mergedTimes(results, pool).Response)
	}
	is.high, is.median = at(results, j.Quantile), at(results, 0.5)
	if is.draws = m.l.drawnOf(results, pool, j.Quantile); is.draws == nil { // of all pools, or a low quantile
		for i := range results {
			value := math.NaN()
			if of := at(results[i:i+1], j.Quantile); of != nil {
				value = *of
			}
			is.draws = append(is.draws, value)
		}
	}
	return is
}

// leastMs is the least latency that others are divided by.
const leastMs = 1e-3

// comparedWith compares runs under a remedy with runs as recorded, and returns the factor of the judged latency,
// which may be most. Both have the same moments of the same arrivals, so that they are compared draw by draw: what a
// moment makes slow is slow on both sides.
func (m *maker) comparedWith(was, is measured, most float64) (verdict, float64) {
	if is.high == nil {
		return verdict{}, math.NaN()
	}
	factor := *is.high / math.Max(*was.high, leastMs)
	around := Range{factor, factor}
	if len(was.draws) == len(is.draws) {
		factors := make([]float64, len(is.draws))
		for i := range factors {
			factors[i] = is.draws[i] / math.Max(was.draws[i], leastMs)
		}
		if r := rangeOfDraws(factors); r != nil {
			around = Range{math.Min(factor, r.Low), math.Max(factor, r.High)}
		}
	}
	if is.cpu < (1-collapseShare)*was.cpu || m.o.Objective == nil && slowerHalf(was.median, is.median) {
		return verdict{}, factor
	}
	return verdict{may: around.Low <= most, is: factor <= most, surely: around.High <= most}, factor
}

// slowerHalf reports whether a median is worse than another.
func slowerHalf(was, is *float64) bool {
	return was != nil && is != nil && *is > *was*slowerMedian && *is-*was > leastMedianMs
}
