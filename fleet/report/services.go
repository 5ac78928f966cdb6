package report

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// services answers the services' part, the ledger and what is not known.
func services(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	containers, err := sizedContainers(ctx, e)
	if err != nil {
		return err
	}
	byName := estimated(containers, o.Bound)
	for _, s := range byName {
		if s.load, s.fails = survives(s.on, o.Failover); s.fails < o.Failover && len(s.on) > 0 {
			d.FailoverNone++
		}
	}
	reasons := map[string]*view.Unknown{}
	for i := range containers {
		c := &containers[i]
		if c.RunsNow == 0 {
			continue
		}
		d.Containers++
		hour, known := o.hourly(c.Node)
		if !known && c.CoresNow != nil && len(o.CorePrices) > 0 {
			d.CoresWithoutPrice += *c.CoresNow
		}
		byName[c.Service].add(c, hour)
		if c.byBounds {
			d.ByBounds++
		}
		if c.unknown == "" {
			continue
		}
		if reasons[c.unknown] == nil {
			reasons[c.unknown] = &view.Unknown{Reason: c.unknown}
		}
		u := reasons[c.unknown]
		if u.Containers++; c.CoresNow != nil {
			u.Cores += *c.CoresNow
		}
	}
	for _, s := range byName {
		s.choose(o.Failover)
		d.Priced += s.priced
	}
	for _, u := range reasons {
		round(&u.Cores)
		d.Unknown = append(d.Unknown, *u)
	}
	slices.SortFunc(d.Unknown, func(a, b view.Unknown) int {
		return cmp.Or(cmp.Compare(b.Containers, a.Containers), cmp.Compare(a.Reason, b.Reason))
	})
	fragmented, err := fragmentation(ctx, e, containers, byName)
	if err != nil {
		return err
	}
	round(&d.CoresWithoutPrice)
	d.Ledger, d.ByRemedy, d.FailoverHosts = ledger(byName, &o, fragmented), byRemedy(byName, &o), o.Failover
	return shownServices(ctx, e, &o, d, byName, containers)
}

// estimated are the services, with what their containers need and where those are that run now.
func estimated(containers []sized, bound float64) map[string]*service {
	byName := map[string]*service{}
	type alike struct{ service, settings string }
	groups := map[alike][]*sized{}
	var order []alike
	for i := range containers {
		c := &containers[i]
		s := byName[c.Service]
		if s == nil {
			s = &service{on: map[string]int{}}
			byName[c.Service] = s
		}
		if c.RunsNow == 1 {
			s.on[c.Cluster+"/"+c.Node]++
		}
		group := alike{c.Service, c.settings()}
		if groups[group] == nil {
			order = append(order, group)
		}
		groups[group] = append(groups[group], c)
	}
	for _, group := range order {
		byName[group.service].size(groups[group], bound)
		priceTogether(groups[group])
	}
	for _, s := range byName {
		if s.need != nil {
			demand := s.need.widest.demand()
			s.need.twice = demand.TwiceNeeds(s.need.bound)
		}
	}
	return byName
}

// sizedContainers reads the containers and their histograms.
func sizedContainers(ctx context.Context, e engine.Engine) (containers []sized, err error) {
	places := map[int64]int{}
	if err := engine.Each(ctx, e, "sizes", func(c sized) {
		if places[c.ContainerNo] = len(containers); c.CandidateFrom != nil {
			c.others = []periodmodel.Outcome{{From: int(*c.CandidateFrom)}}
		}
		containers = append(containers, c)
	}); err != nil {
		return nil, err
	}
	if err := engine.Each(ctx, e, "demand", func(line struct {
		ContainerNo, Microseconds int64
		Kind                      string
		CPUs                      int32
	}) {
		c := &containers[places[line.ContainerNo]]
		histogram := &c.wanted
		if line.Kind == "width" {
			histogram = &c.width
		}
		*histogram = append(*histogram, leastlimit.Level{CPUs: line.CPUs, Microseconds: line.Microseconds})
	}); err != nil {
		return nil, err
	}
	if err := prices(ctx, e, func(no int64) *sized { return &containers[places[no]] }); err != nil {
		return nil, err
	}
	if err := longBursts(ctx, e, func(no int64) *sized { return &containers[places[no]] }); err != nil {
		return nil, err
	}
	err = engine.Each(ctx, e, "candidates", func(line struct {
		ContainerNo                                      int64
		Step, Throttled                                  int
		StoppedUS, DelayUS, BurstStoppedUS, BurstDelayUS int64
	}) {
		c := &containers[places[line.ContainerNo]]
		c.others[0].Candidates = append(c.others[0].Candidates, periodmodel.Candidate{
			Step: line.Step, Stopped: microseconds(line.StoppedUS), Throttled: line.Throttled, Delay: microseconds(line.DelayUS),
			BurstStopped: microseconds(line.BurstStoppedUS), BurstDelay: microseconds(line.BurstDelayUS),
		})
	})
	return containers, err
}

// shownServices makes the services of the document.
func shownServices(ctx context.Context, e engine.Engine, o *Options, d *view.Document, byName map[string]*service,
	containers []sized) error {
	spenders := map[string]string{}
	if err := engine.Each(ctx, e, "spenders", func(line struct{ Service, SpentBy string }) {
		spenders[line.Service] = line.SpentBy
	}); err != nil {
		return err
	}
	stops, err := lengthsByService(ctx, e, "stops")
	if err != nil {
		return err
	}
	requests, byContainer, err := requestsTaken(ctx, e)
	if err != nil {
		return err
	}
	roles, err := rolesByService(ctx, e)
	if err != nil {
		return err
	}
	overHosts, overShards, err := spreads(ctx, e, containers, byContainer)
	if err != nil {
		return err
	}
	return engine.Each(ctx, e, "services", func(line struct {
		view.Service
		ThrottledOwn, ThrottledPod, ThrottledSlice, ThrottledInside *float64
	}) {
		s, known := line.Service, byName[line.Name]
		s.StopP50, s.StopP99 = stops[s.Name].quantile(0.5), stops[s.Name].quantile(0.99)
		took := requests[s.Name]
		if s.RequestP99 = took.requestP99(); s.RequestP99 != nil {
			s.Requests, s.RequestP50 = new(took.count()), took.quantile(0.5)
		}
		s.Roles = append([]view.Role{}, roles[s.Name]...)
		s.StoppedBy = stopper(s.StoppedShare, [...]*float64{
			own: line.ThrottledOwn, pod: line.ThrottledPod, slice: line.ThrottledSlice, inside: line.ThrottledInside,
		})
		if s.StoppedBy == &stoppers[own] {
			s.SpentBy = new(s.Name)
		} else if by, ok := spenders[s.Name]; ok && s.StoppedBy == &stoppers[pod] {
			s.SpentBy = &by
		}
		s.Workload, s.OverHosts, s.OverShards = known.workload.shown(d.Hosts), overHosts[s.Name], overShards[s.Name]
		known.show(&s, d.FailoverHosts)
		s.PerMonth = known.perMonth(o)
		roundMonths(s.PerMonth)
		round(s.CoresNow, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh, s.Limit, s.LimitLow, s.LimitHigh, s.BurstLimit,
			s.RunnablePerCore, s.StoppedShare, s.StoppedShareLow, s.UsedCPUs, s.ContendedShare, s.ContendedShareLow)
		d.Services = append(d.Services, s)
	})
}

// show adds what its containers need to what the document says of it.
func (s *service) show(to *view.Service, fail int) {
	if limit, ok := s.limit(view.Lower); ok {
		limit = limit.times(s.load)
		to.Limit, to.LimitLow, to.LimitHigh = new(leastlimit.Tenths(limit.cpus)), &limit.low, &limit.high
	}
	if limit, ok := s.limit(view.Burst); ok {
		to.BurstLimit, to.BurstPeriodMS = new(leastlimit.Tenths(limit.times(s.load).cpus)), periodMS(s.burstPeriod())
	}
	to.Unknown, to.Young, to.ByBounds, to.FailoverHosts = s.unknown, s.young, s.byBounds, s.fails
	if s.showPrices(to, fail); s.sized > 0 {
		_, remedy, remains := s.remains()
		to.Remedy, to.CoresAfter, to.CoresAfterLow, to.CoresAfterHigh = &remedy, &remains.after, &remains.low, &remains.high
		to.Half, to.Double = s.shards(fail, 0.5), s.shards(fail, 2)
	}
}

// stoppers are whose quota it can be, in the order of the columns.
var stoppers = [...]string{own: "own", pod: "pod", slice: "slice", inside: "inside"}

const (
	own = iota
	pod
	slice
	inside
)

// stopper is whose quota stopped a service most, one of the stoppers; nil: none did, or that is not known.
func stopper(share *float64, throttled [4]*float64) *string {
	if share == nil || *share == 0 {
		return nil
	}
	most, found := 0.0, -1
	for i, seconds := range throttled {
		if seconds != nil && *seconds > most {
			most, found = *seconds, i
		}
	}
	if found < 0 {
		return nil
	}
	return &stoppers[found]
}

// round cuts figures to a millionth: an engine adds floats in any order, and the last digits are of that order.
func round(figures ...*float64) {
	for _, v := range figures {
		if v != nil {
			*v = rounded(*v)
		}
	}
}

func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
