package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
	requestscan "github.com/unthrottle/unthrottle/internal/explain/requests"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// services answers the services' part, the ledger and what is not known.
func services(ctx context.Context, e engine.Engine, o Options, d *view.Document) error {
	all, err := containers(ctx, e)
	if err != nil {
		return err
	}
	needs, whys, byBounds := map[string]*need{}, make([]string, len(all)), make([]bool, len(all))
	for i := range all {
		c := &all[i]
		demand := c.demand()
		if whys[i] = c.why(&demand); whys[i] != "" {
			continue
		}
		if needs[c.service] == nil {
			needs[c.service] = &need{}
		}
		n, byPeriods := c.needOf(&demand, o.Bound)
		needs[c.service].take(n)
		byBounds[i] = !byPeriods
	}
	for _, n := range needs {
		demand := n.widest.demand()
		n.twice = demand.TwiceNeeds(n.bound)
	}
	sums := spread(all)
	for _, s := range sums {
		var ok bool
		if s.load, ok = survives(s.on, o.Failover); !ok {
			d.FailoverNone++
		}
	}
	reasons, workloads := map[string]*view.Unknown{}, workloads{}
	for i := range all {
		c := &all[i]
		if !c.now {
			continue
		}
		d.Containers++
		sums[c.service].add(c, whys[i], needs[c.service])
		workloads.add(c)
		if byBounds[i] {
			d.ByBounds++
			sums[c.service].byBounds++
		}
		if whys[i] != "" {
			if reasons[whys[i]] == nil {
				reasons[whys[i]] = &view.Unknown{Reason: whys[i]}
			}
			u := reasons[whys[i]]
			if u.Containers++; c.cores != nil {
				u.Cores += *c.cores
			}
		}
	}
	for _, u := range reasons {
		round(&u.Cores)
		d.Unknown = append(d.Unknown, *u)
	}
	slices.SortFunc(d.Unknown, func(a, b view.Unknown) int {
		return cmp.Or(cmp.Compare(b.Containers, a.Containers), cmp.Compare(a.Reason, b.Reason))
	})
	fragmented, err := fragmentation(ctx, e, all, sums, needs)
	if err != nil {
		return err
	}
	d.Ledger, d.FailoverHosts = ledger(sums, o.Failover, fragmented), o.Failover
	return pictures(ctx, e, d, needs, sums, workloads)
}

// spread begins the sums of the services that run now, with where their containers are.
func spread(all []sized) map[string]*sum {
	sums := map[string]*sum{}
	for i := range all {
		c := &all[i]
		if !c.now {
			continue
		}
		if sums[c.service] == nil {
			sums[c.service] = &sum{on: map[string]int{}}
		}
		sums[c.service].on[c.cluster+"/"+c.node]++
	}
	return sums
}

// containers reads the containers and their histograms.
func containers(ctx context.Context, e engine.Engine) (all []sized, err error) {
	at := map[int64]int{}
	if err := e.Ask(ctx, "sizes", func(scan func(...any) error) error {
		var c sized
		var now int
		if err := scan(&c.no, &c.cluster, &c.node, &c.namespace, &c.pod, &c.name, &c.service, &c.remedy, &c.limit, &c.ownLimit, &c.request, &c.allowed, &now, &c.cores, &c.measured, &c.stopped, &c.widestUse,
			&c.periodSeconds, &c.periods, &c.from); err != nil {
			return err
		}
		c.now = now == 1
		at[c.no] = len(all)
		all = append(all, c)
		return nil
	}); err != nil {
		return nil, err
	}
	err = e.Ask(ctx, "demand", func(scan func(...any) error) error {
		var no int64
		var kind string
		var l leastlimit.Level
		if err := scan(&no, &kind, &l.CPUs, &l.Microseconds); err != nil {
			return err
		}
		c := &all[at[no]]
		if kind == "width" {
			c.width = append(c.width, l)
		} else {
			c.wanted = append(c.wanted, l)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = e.Ask(ctx, "candidates", func(scan func(...any) error) error {
		var no, stopped, delay, burstStopped, burstDelay int64
		var l periodmodel.Candidate
		if err := scan(&no, &l.Step, &stopped, &l.Throttled, &delay, &burstStopped, &burstDelay); err != nil {
			return err
		}
		us := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
		l.Stopped, l.Delay, l.BurstStopped, l.BurstDelay = us(stopped), us(delay), us(burstStopped), us(burstDelay)
		c := &all[at[no]]
		c.candidates = append(c.candidates, l)
		return nil
	})
	return all, err
}

// pictures makes the services of the document.
func pictures(ctx context.Context, e engine.Engine, d *view.Document, needs map[string]*need, sums map[string]*sum, controllers workloads) error {
	spenders := map[string]string{}
	if err := e.Ask(ctx, "spenders", func(scan func(...any) error) error {
		var service, by string
		if err := scan(&service, &by); err != nil {
			return err
		}
		spenders[service] = by
		return nil
	}); err != nil {
		return err
	}
	stops, err := lengthsOf(ctx, e, "stops")
	if err != nil {
		return err
	}
	requests, err := lengthsOf(ctx, e, "requests")
	if err != nil {
		return err
	}
	roles, err := rolesOf(ctx, e)
	if err != nil {
		return err
	}
	return e.Ask(ctx, "services", func(scan func(...any) error) error {
		var s view.Service
		var by [4]*float64
		if err := scan(&s.Name, &s.Containers, &s.Hosts, &s.CoresNow, &s.RunnablePerCore, &s.StoppedShareLow, &s.StoppedShare, &s.UsedCPUs,
			&by[0], &by[1], &by[2], &by[3], &s.ContendedShareLow, &s.ContendedShare); err != nil {
			return err
		}
		s.StoppedBy = stopper(s.StoppedShare, by)
		s.StopP50, s.StopP99 = stops[s.Name].quantile(0.5), stops[s.Name].quantile(0.99)
		if of := requests[s.Name]; of.count() >= requestscan.Least {
			s.Requests, s.RequestP50, s.RequestP99 = new(of.count()), of.quantile(0.5), of.quantile(0.99)
		}
		s.Roles = append([]view.Role{}, roles[s.Name]...)
		switch {
		case s.StoppedBy == nil:
		case *s.StoppedBy == stoppers[0]:
			s.SpentBy = new(s.Name)
		case *s.StoppedBy == stoppers[1]:
			if by, ok := spenders[s.Name]; ok {
				s.SpentBy = &by
			}
		}
		s.Workload = controllers.of(s.Name, d.Hosts)
		of := sums[s.Name]
		if n := needs[s.Name]; n != nil {
			if of != nil {
				n = new(n.times(of.load))
			}
			s.Limit, s.LimitLow, s.LimitHigh = new(leastlimit.Tenths(n.limit.at)), new(n.limit.low), new(n.limit.high)
			if !math.IsInf(n.burst.at, 1) {
				s.BurstLimit = new(leastlimit.Tenths(n.burst.at))
			}
		}
		if of != nil {
			s.Unknown, s.Young, s.ByBounds = of.unknown, of.young, of.byBounds
			if of.sized > 0 {
				remedy, remains := of.remedy()
				s.Remedy, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh = &remedy, &remains.after, &remains.low, &remains.high
				s.Half, s.Double = of.shards(needs[s.Name], d.FailoverHosts, 0.5), of.shards(needs[s.Name], d.FailoverHosts, 2)
			}
		}
		round(s.CoresNow, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh, s.Limit, s.LimitLow, s.LimitHigh, s.BurstLimit, s.RunnablePerCore, s.StoppedShare, s.StoppedShareLow, s.UsedCPUs, s.ContendedShare, s.ContendedShareLow)
		d.Services = append(d.Services, s)
		return nil
	})
}

// stoppers are whose quota it can be, in the order of the columns.
var stoppers = [4]string{"own", "pod", "slice", "inside"}

// stopper is whose quota stopped a service most; nil: none did, or that is not known.
func stopper(share *float64, by [4]*float64) *string {
	if share == nil || *share == 0 {
		return nil
	}
	most, found := 0.0, -1
	for i, seconds := range by {
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
func round(all ...*float64) {
	for _, v := range all {
		if v != nil {
			*v = rounded(*v)
		}
	}
}

func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
