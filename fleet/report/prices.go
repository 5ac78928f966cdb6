package report

import (
	"context"
	"maps"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// pricing is what recordings tell of each remedy: how many CPUs a container needs for the judged latency to stay.
type pricing struct {
	// of is whose latency is judged, ms what it was; "" and 0: containers differ in whose.
	of           string
	quantile, ms float64
	// byObjective: the latency must keep to ms, the objective, and not to what it was.
	byObjective bool
	// needs are by forecast's names. high is infinite where no number of CPUs surely does.
	needs map[string]size
	// bursts are those of a burst by its period, of which priceTogether puts the best into needs; burstPeriod is that of it.
	bursts      bursts
	burstPeriod time.Duration
	// knee is the part of its limit that it uses where the limit is just enough; 0: not known.
	knee float64
}

// prices reads the pricings of containers.
func prices(ctx context.Context, e engine.Engine, of func(containerNo int64) *sized) error {
	return engine.Each(ctx, e, "prices", func(line struct {
		ContainerNo, PeriodUS       int64
		PricedOf, PricedRemedy      string
		PricedQuantile              float64
		PricedMicroseconds          int64
		MilliCPUs                   int32
		LowMilliCPUs, HighMilliCPUs *int32
		UsedCPUs                    float64
		ByObjective                 int
	}) {
		c := of(line.ContainerNo)
		if c.pricing == nil {
			c.pricing = &pricing{of: line.PricedOf, quantile: line.PricedQuantile, ms: float64(line.PricedMicroseconds) / 1000,
				byObjective: line.ByObjective == 1, needs: map[string]size{}, bursts: bursts{}}
		}
		need := needOf(line.MilliCPUs, line.LowMilliCPUs, line.HighMilliCPUs)
		if line.PricedRemedy == forecast.Burst {
			c.pricing.bursts[microseconds(line.PeriodUS)] = need
			return
		}
		c.pricing.needs[line.PricedRemedy] = need
		if line.PricedRemedy == forecast.Limit {
			c.pricing.knee = min(1, line.UsedCPUs/need.cpus)
		}
	})
}

// needOf is what a recording tells, in thousandths of a CPU.
func needOf(cpus int32, low, high *int32) size {
	need := size{float64(cpus) / 1000, 0, math.Inf(1)}
	if low != nil {
		need.low = float64(*low) / 1000
	}
	if high != nil {
		need.high = float64(*high) / 1000
	}
	return need
}

// priceTogether gives containers of a service with the same settings one pricing: what the one needs that needs most,
// with each remedy of which all recordings tell it, and no less than the mean of the busiest five minutes. So last
// week's pods tell what this week's need. Without a recording they keep what rows tell.
func priceTogether(containers []*sized) {
	var all *pricing
	busiest := 0.0
	for _, c := range containers {
		if c.WidestMeanCPUs != nil {
			busiest = max(busiest, *c.WidestMeanCPUs)
		}
		switch p := c.pricing; {
		case p == nil:
		case all == nil:
			all = new(*p)
			all.needs, all.bursts = maps.Clone(p.needs), maps.Clone(p.bursts)
		default:
			all.take(p)
		}
	}
	if all != nil {
		for name, need := range all.needs {
			need.take(exactly(busiest))
			all.needs[name] = need
		}
		for period, need := range all.bursts {
			need.take(exactly(busiest))
			all.bursts[period] = need
		}
		if period, need, known := all.bursts.best(); known {
			all.needs[forecast.Burst], all.burstPeriod = need, period
		}
	}
	for _, c := range containers {
		if c.pricing = nil; all != nil && len(all.needs) > 0 && c.unfit() == "" {
			c.pricing, c.unknown, c.byBounds = all, "", false
		}
	}
}

func (p *pricing) take(other *pricing) {
	if p.of != other.of || p.quantile != other.quantile || p.byObjective != other.byObjective || p.byObjective && p.ms != other.ms {
		p.of, p.quantile, p.ms, p.byObjective = "", 0, 0, false
	}
	if p.quantile > 0 {
		p.ms = max(p.ms, other.ms)
	}
	p.knee = min(p.knee, other.knee)
	p.bursts.take(other.bursts)
	for name, need := range p.needs {
		if more, ok := other.needs[name]; ok {
			need.take(more)
			p.needs[name] = need
		} else {
			delete(p.needs, name)
		}
	}
}

// reportName is the report's name of a remedy that rows have in force or priced.
func reportName(name string) string {
	for _, r := range view.Remedies {
		if r.Name == name {
			return r.Remedy
		}
	}
	return name
}

// priced are the options that a pricing tells of. Exclusive CPUs are whole, and only fewer of them give pinned
// containers' back.
func (g *group) priced(s *service, fail int) (options []option) {
	n := float64(g.containers)
	for _, r := range view.Remedies {
		need, known := g.pricing.needs[r.Name]
		whole, shown := leastlimit.Tenths, r.Remedy
		if r.Name == forecast.Pin {
			whole = leastlimit.Whole
		}
		if g.pinned {
			known, shown = known && r.Name == forecast.Pin, view.Lower
		}
		if !known || whole(need.cpus) > g.each+1e-9 && r.Name == forecast.Pin {
			continue
		}
		o := option{remedy: shown, limit: need}
		if r.Name == forecast.Burst {
			o.period = g.pricing.burstPeriod
		}
		if r.Name != forecast.Shards {
			o.needed = remaining(need, s.load, g.each, whole).times(n)
		} else if half, load, ok := s.halved(g, fail); ok {
			o.needed = remaining(need.times(2), load, 2*g.each, whole).times(half)
			o.high = min(o.high, g.cores)
		} else {
			continue
		}
		if o.after <= g.cores { // half of an odd number of containers may need more
			options = append(options, o)
		}
	}
	if len(options) == 0 || options[0].remedy != view.Lower {
		keeps := option{remedy: view.Leave, needed: needed{after: g.cores, low: g.cores, high: g.cores}, limit: exactly(g.each)}
		options = append([]option{keeps}, options...)
	}
	return options
}

// halved is half of a group's containers, and how much of its load each carries when hosts fail. ok is false where there
// cannot be half as many, such as of a DaemonSet.
func (s *service) halved(g *group, fail int) (containers, load float64, ok bool) {
	if g.containers < 2 || s.workload.kind == demand.DaemonSetOrJob || s.workload.kind == demand.CronJob {
		return 0, 0, false
	}
	half := (g.containers + 1) / 2
	load, ok = s.survivesAs(half, fail)
	return float64(half), load, ok
}

// objective is what a group needs, with nothing but its limit or its CPUs, to keep its objective; nil: it has none, or no
// number of CPUs keeps it.
func (g *group) objective(load float64) *view.Objective {
	name, whole := forecast.Limit, leastlimit.Tenths
	if g.pinned {
		name, whole = forecast.Pin, leastlimit.Whole
	}
	need, known := g.pricing.needs[name]
	if !known || !g.pricing.byObjective {
		return nil
	}
	all := func(cpus float64) float64 { return rounded(float64(g.containers) * whole(load*cpus)) }
	o := view.Objective{Quantile: g.pricing.quantile, MS: g.pricing.ms, Cores: all(need.cpus), CoresLow: all(need.low)}
	if !math.IsInf(need.high, 1) {
		o.CoresHigh = new(all(need.high))
	}
	o.Slack = rounded(1 - o.Cores/g.cores)
	return &o
}

// showPrices adds to the document what the largest group with a pricing needs with each remedy.
func (s *service) showPrices(to *view.Service, fail int) {
	to.Priced, to.Prices = s.priced, []view.Price{}
	var of *group
	for _, g := range s.groups {
		if g.pricing != nil && (of == nil || g.cores > of.cores) {
			of = g
		}
	}
	if of == nil {
		return
	}
	if p := of.pricing; p.quantile > 0 {
		to.JudgedOf, to.JudgedQuantile, to.JudgedMS = &p.of, &p.quantile, &p.ms
		to.Objective = of.objective(s.load)
	}
	if of.pricing.knee > 0 {
		to.KneeShare = new(rounded(of.pricing.knee))
	}
	for _, o := range of.options {
		if o.remedy == view.Leave {
			continue
		}
		price := view.Price{Remedy: o.remedy, PeriodMS: periodMS(o.period), CPUs: rounded(o.limit.cpus), CPUsLow: rounded(o.limit.low),
			Containers: of.containers,
			CoresNow:   rounded(of.cores), CoresAfter: rounded(o.after), CoresAfterLow: rounded(o.low), CoresAfterHigh: rounded(o.high),
			Asks: view.Asks(o.remedy)}
		if !math.IsInf(o.limit.high, 1) {
			price.CPUsHigh = new(rounded(o.limit.high))
		}
		if o.remedy != view.Pin {
			price.Rounding = new(rounded(o.rounding))
		}
		if fail > 0 {
			price.Failover = new(rounded(o.failover))
		}
		to.Prices = append(to.Prices, price)
	}
}
