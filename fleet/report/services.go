package report

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/fleet/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// sized is a container, with what is known of its demand.
type sized struct {
	no                           int64
	service, remedy              string
	limit, ownLimit              *float64
	allowed                      *int32
	now                          bool
	cores                        *float64
	measured, stopped, widestUse *float64
	width, wanted                []leastlimit.Level
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
	case c.measured == nil || c.stopped == nil || c.widestUse == nil:
		return notMeasured
	case *c.measured < leastMeasured:
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

// need is what one container of a service needs: the most of what is known of any.
type need struct {
	leastlimit.Needs
	known bool
}

func (n *need) take(of leastlimit.Needs) {
	n.known = true
	n.Low, n.Safe, n.High = max(n.Low, of.Low), max(n.Safe, of.Safe), max(n.High, of.High)
}

// services answers the services' part, the ledger and what is not known.
func services(ctx context.Context, e Engine, o Options, d *view.Document) error {
	all, err := containers(ctx, e)
	if err != nil {
		return err
	}
	needs, whys := map[string]*need{}, make([]string, len(all))
	for i := range all {
		c := &all[i]
		demand := c.demand()
		if whys[i] = c.why(&demand); whys[i] != "" {
			continue
		}
		if needs[c.service] == nil {
			needs[c.service] = &need{}
		}
		needs[c.service].take(demand.Least(o.Bound))
	}
	sums, reasons := map[string]*sum{}, map[string]*view.Unknown{}
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
	return pictures(ctx, e, d, needs, sums)
}

// sum is what the containers of one service have and need now.
type sum struct {
	cores, after, low, high, rounding float64
	sized, unknown                    int
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
		s.after, s.low, s.high = s.after+now, s.low+now, s.high+now
		return
	}
	s.sized++
	whole := leastlimit.Tenths
	if c.pinned() {
		whole = leastlimit.Whole
	}
	at := func(cpus float64) float64 { return min(now, whole(cpus)) }
	s.after, s.low, s.high = s.after+at(n.Safe), s.low+at(n.Low), s.high+at(n.High)
	s.rounding += at(n.Safe) - min(now, n.Safe)
}

// ledger adds up the services.
func ledger(all map[string]*sum) view.Ledger {
	var total sum
	for _, s := range all {
		total.cores, total.after, total.low, total.high, total.rounding = total.cores+s.cores, total.after+s.after, total.low+s.low, total.high+s.high, total.rounding+s.rounding
	}
	l := view.Ledger{CoresNow: total.cores, CoresAfter: total.after, Rounding: total.rounding,
		Saved: total.cores - total.after, SavedLow: total.cores - total.high, SavedHigh: total.cores - total.low}
	round(&l.CoresNow, &l.CoresAfter, &l.Rounding, &l.Saved, &l.SavedLow, &l.SavedHigh)
	return l
}

// containers reads the containers and their histograms.
func containers(ctx context.Context, e Engine) (all []sized, err error) {
	at := map[int64]int{}
	if err := e.Ask(ctx, question("sizes"), func(scan func(...any) error) error {
		var c sized
		var now int
		if err := scan(&c.no, &c.service, &c.remedy, &c.limit, &c.ownLimit, &c.allowed, &now, &c.cores, &c.measured, &c.stopped, &c.widestUse); err != nil {
			return err
		}
		c.now = now == 1
		at[c.no] = len(all)
		all = append(all, c)
		return nil
	}); err != nil {
		return nil, err
	}
	err = e.Ask(ctx, question("demand"), func(scan func(...any) error) error {
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
	return all, err
}

// pictures makes the services of the document.
func pictures(ctx context.Context, e Engine, d *view.Document, needs map[string]*need, sums map[string]*sum) error {
	spenders := map[string]string{}
	if err := e.Ask(ctx, question("spenders"), func(scan func(...any) error) error {
		var service, by string
		if err := scan(&service, &by); err != nil {
			return err
		}
		spenders[service] = by
		return nil
	}); err != nil {
		return err
	}
	return e.Ask(ctx, question("services"), func(scan func(...any) error) error {
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
		if n := needs[s.Name]; n != nil {
			s.Limit, s.LimitLow, s.LimitHigh = new(leastlimit.Tenths(n.Safe)), new(n.Low), new(n.High)
		}
		if of := sums[s.Name]; of != nil {
			s.Unknown = of.unknown
			if of.sized > 0 {
				s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh = &of.after, &of.low, &of.high
				s.Remedy = new(view.Leave)
				if of.after < of.cores-0.05 {
					s.Remedy = new(view.Lower)
				}
			}
		}
		round(s.CoresNow, s.CoresAfter, s.CoresAfterLow, s.CoresAfterHigh, s.Limit, s.LimitLow, s.LimitHigh, s.RunnablePerCore, s.StoppedShare, s.StoppedShareLow, s.UsedCPUs)
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
