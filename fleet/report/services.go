package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/fleet/leastlimit"
	"github.com/unthrottle/unthrottle/internal/fleet/periodmodel"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// sized is a container, with what is known of its demand.
type sized struct {
	no                           int64
	node, namespace, pod, name   string
	service, remedy              string
	request                      *float64
	limit, ownLimit              *float64
	allowed                      *int32
	now                          bool
	cores                        *float64
	measured, stopped, widestUse *float64
	width, wanted                []leastlimit.Level
	// What its periods tell: nil, and no limits, where that was not kept.
	periodSeconds, periods *float64
	from                   *int32
	candidates             []periodmodel.Candidate
}

// Reasons for which a container's need is not known. Users read them.
const (
	noCores     = "neither a limit nor a request of its own is known"
	noLimit     = "no limit of its own"
	otherLimit  = "a pod's, slice's or inner limit is below its own"
	capped      = "a remedy in force bounds its width, or lifts its quota"
	notMeasured = "demand was not measured: the probe needs root and BPF"
	tooShort    = "its limit, CPUs and remedy of now were observed for less than five minutes"
	idle        = "it had next to nothing to do"
)

// Below these a demand says nothing: a slot less a few rounds, and a second of work.
const (
	leastMeasured = 285.0
	leastBusy     = 1.0
)

// why is the reason for which nothing can be said; "": something can.
func (c *sized) why(demand *leastlimit.Demand) string {
	switch {
	case c.cores == nil:
		return noCores
	case c.remedy != "" && !slices.Contains([]remedy.Kind{remedy.Pin, remedy.Burst, remedy.Period, remedy.Raise}, remedy.Kind(c.remedy)):
		return capped
	case !c.pinned() && c.ownLimit == nil:
		return noLimit
	case !c.pinned() && c.limit != nil && *c.limit < *c.ownLimit*(1-1e-6):
		return otherLimit
	case c.measured == nil || c.stopped == nil:
		return notMeasured
	case *c.measured < leastMeasured || c.widestUse == nil: // a row of less than a minute has no mean that counts
		return tooShort
	case demand.BusySeconds() < leastBusy:
		return idle
	}
	return ""
}

func (c *sized) pinned() bool { return c.remedy == string(remedy.Pin) }

// demand is what the model takes.
func (c *sized) demand() leastlimit.Demand {
	d := leastlimit.Demand{Width: c.width, Wanted: c.wanted}
	if c.widestUse != nil {
		d.WidestMean = *c.widestUse
	}
	if c.stopped != nil {
		d.StoppedSeconds = *c.stopped
	}
	if c.allowed != nil {
		d.AllowedCPUs = *c.allowed
	}
	return d
}

// leastKnown is the part of the time for which it must be known what came in which period.
const leastKnown = 0.9

// curve is what other limits would have done; nil: periods were not kept, or tell of too little of the time.
func (c *sized) curve(demand *leastlimit.Demand) *periodmodel.Curve {
	if c.pinned() || c.periodSeconds == nil || c.periods == nil || c.from == nil || *c.periodSeconds < leastKnown**c.measured {
		return nil
	}
	curve := &periodmodel.Curve{Busy: time.Duration(demand.BusySeconds() * float64(time.Second)), Periods: *c.periods}
	curve.Add(periodmodel.Outcome{From: int(*c.from), Candidates: c.candidates})
	return curve
}

// size is a limit that is enough, with its bounds.
type size struct{ at, low, high float64 }

func (s *size) take(of size) {
	s.at, s.low, s.high = max(s.at, of.at), max(s.low, of.low), max(s.high, of.high)
}

// need is what one container of a service needs: the most of what is known of any.
type need struct {
	// limit stops it for at most the bound. lower does so, or stops it no longer than now where that is more; burst does that with a
	// burst of one quota. burst is infinite where that is not known.
	limit, lower, burst size
}

// needOf is what a container needs. byPeriods: its periods tell; else all orders of its demand are bounded.
func (c *sized) needOf(demand *leastlimit.Demand, bound float64) (n need, byPeriods bool) {
	all := demand.Least(bound)
	curve := c.curve(demand)
	if curve == nil {
		of, unknown := size{all.Safe, all.Low, all.High}, math.Inf(1)
		return need{of, of, size{unknown, unknown, unknown}}, false
	}
	bursts := c.remedy == string(remedy.Burst)
	present, served := curve.At(*c.ownLimit, bursts)
	off := periodmodel.Off(present.StoppedShare)
	least := func(stopped float64, burst bool) size {
		at := max(curve.Least(periodmodel.Point{StoppedShare: stopped, Delay: present.Delay}, burst), all.Low)
		return size{at, max(all.Low, at/(1+off)), at * (1 + off)}
	}
	same := max(bound, present.StoppedShare)
	n = need{least(bound, bursts), least(same, bursts), least(same, true)}
	if !served { // it is less than what came: nothing of it can go
		now := size{*c.ownLimit, *c.ownLimit, *c.ownLimit}
		n.lower, n.burst = now, now
	}
	return n, true
}

func (n *need) take(of need) {
	n.limit.take(of.limit)
	n.lower.take(of.lower)
	n.burst.take(of.burst)
}

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
	sums, reasons, workloads := map[string]*sum{}, map[string]*view.Unknown{}, workloads{}
	for i := range all {
		c := &all[i]
		if !c.now {
			continue
		}
		d.Containers++
		if sums[c.service] == nil {
			sums[c.service] = &sum{}
		}
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
	d.Ledger = ledger(sums)
	return pictures(ctx, e, d, needs, sums, workloads)
}

// sum is what the containers of one service have and need now.
type sum struct {
	cores                    float64
	lower, burst             needed
	sized, unknown, byBounds int
}

// needed is what remains with one remedy. rounding is what it has above what is needed.
type needed struct{ after, low, high, rounding float64 }

func (n *needed) add(of needed) {
	n.after, n.low, n.high, n.rounding = n.after+of.after, n.low+of.low, n.high+of.high, n.rounding+of.rounding
}

func (s *sum) add(c *sized, why string, n *need) {
	if c.cores == nil {
		s.unknown++
		return
	}
	now := *c.cores
	s.cores += now
	if why != "" {
		s.unknown++
		s.lower.add(needed{now, now, now, 0})
		s.burst.add(needed{now, now, now, 0})
		return
	}
	s.sized++
	whole := leastlimit.Tenths
	if c.pinned() {
		whole = leastlimit.Whole
	}
	at := func(cpus float64) float64 { return min(now, whole(cpus)) }
	of := func(n size) needed { return needed{at(n.at), at(n.low), at(n.high), at(n.at) - min(now, n.at)} }
	s.lower.add(of(n.lower))
	s.burst.add(of(n.burst))
}

// muchMore is which part of its cores a burst must save beyond a lower limit alone: it is one more setting to keep.
const muchMore = 0.05

// remedy is what gives most back, and what remains with it.
func (s *sum) remedy() (string, needed) {
	const noise = 0.05 // half a step of a limit
	switch {
	case s.burst.after < s.lower.after-max(noise, muchMore*s.cores):
		return view.Burst, s.burst
	case s.lower.after < s.cores-noise:
		return view.Lower, s.lower
	}
	return view.Leave, s.lower
}

// ledger adds up the services.
func ledger(all map[string]*sum) view.Ledger {
	cores, total := 0.0, needed{}
	for _, s := range all {
		cores += s.cores
		_, of := s.remedy()
		total.add(of)
	}
	l := view.Ledger{CoresNow: cores, CoresAfter: total.after, Rounding: total.rounding,
		Saved: cores - total.after, SavedLow: cores - total.high, SavedHigh: cores - total.low}
	round(&l.CoresNow, &l.CoresAfter, &l.Rounding, &l.Saved, &l.SavedLow, &l.SavedHigh)
	return l
}

// containers reads the containers and their histograms.
func containers(ctx context.Context, e engine.Engine) (all []sized, err error) {
	at := map[int64]int{}
	if err := e.Ask(ctx, "sizes", func(scan func(...any) error) error {
		var c sized
		var now int
		if err := scan(&c.no, &c.node, &c.namespace, &c.pod, &c.name, &c.service, &c.remedy, &c.limit, &c.ownLimit, &c.request, &c.allowed, &now, &c.cores, &c.measured, &c.stopped, &c.widestUse,
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
func pictures(ctx context.Context, e engine.Engine, d *view.Document, needs map[string]*need, sums map[string]*sum, of workloads) error {
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
	return e.Ask(ctx, "services", func(scan func(...any) error) error {
		var s view.Service
		var by [4]*float64
		if err := scan(&s.Name, &s.Containers, &s.Hosts, &s.CoresNow, &s.RunnablePerCore, &s.StoppedShareLow, &s.StoppedShare, &s.UsedCPUs,
			&by[0], &by[1], &by[2], &by[3]); err != nil {
			return err
		}
		s.StoppedBy = stopper(s.StoppedShare, by)
		switch {
		case s.StoppedBy == nil:
		case *s.StoppedBy == stoppers[0]:
			s.SpentBy = new(s.Name)
		case *s.StoppedBy == stoppers[1]:
			if by, ok := spenders[s.Name]; ok {
				s.SpentBy = &by
			}
		}
		s.Workload = of.of(s.Name, d.Hosts)
		if n := needs[s.Name]; n != nil {
			s.Limit, s.LimitLow, s.LimitHigh = new(leastlimit.Tenths(n.limit.at)), new(n.limit.low), new(n.limit.high)
			if !math.IsInf(n.burst.at, 1) {
				s.BurstLimit = new(leastlimit.Tenths(n.burst.at))
			}
		}
		if of := sums[s.Name]; of != nil {
			s.Unknown, s.ByBounds = of.unknown, of.byBounds
			if of.sized > 0 {
				remedy, remains := of.remedy()
				s.Remedy, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh = &remedy, &remains.after, &remains.low, &remains.high
			}
		}
		round(s.CoresNow, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh, s.Limit, s.LimitLow, s.LimitHigh, s.BurstLimit, s.RunnablePerCore, s.StoppedShare, s.StoppedShareLow, s.UsedCPUs)
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
