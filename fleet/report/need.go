package report

import (
	"math"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
)

// sized is a container, with what is known of its demand.
type sized struct {
	no                           int64
	cluster, node                string
	namespace, pod, name         string
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

// times is a size for so much of the load.
func (s size) times(load float64) size { return size{load * s.at, load * s.low, load * s.high} }

// need is what one container of a service needs: the most of what is known of any.
type need struct {
	// limit stops it for at most the bound. lower does so, or stops it no longer than now where that is more; burst does that with a
	// burst of one quota. burst is infinite where that is not known.
	limit, lower, burst size
	// mean is what it uses in its busiest five minutes, in CPUs; bound is the share of its time to work for which a quota may stop it.
	mean, bound float64
	// widest is the container of which lower is. twice is how much more is needed by one that does what two such do.
	widest *sized
	twice  float64
}

// times is what it needs for so much of its load. A limit that is large enough for one is, so many times, for several: that is safe, since what
// comes by chance evens out.
func (n *need) times(load float64) need {
	of := *n
	of.limit, of.lower, of.burst, of.mean = n.limit.times(load), n.lower.times(load), n.burst.times(load), load*n.mean
	return of
}

// needOf is what a container needs. byPeriods: its periods tell; else all orders of its demand are bounded.
func (c *sized) needOf(demand *leastlimit.Demand, bound float64) (n need, byPeriods bool) {
	all := demand.Least(bound)
	curve := c.curve(demand)
	if curve == nil {
		of, unknown := size{all.Safe, all.Low, all.High}, math.Inf(1)
		return need{limit: of, lower: of, burst: size{unknown, unknown, unknown}, mean: all.Low, bound: bound, widest: c}, false
	}
	bursts := c.remedy == string(remedy.Burst)
	present, served := curve.At(*c.ownLimit, bursts)
	off := periodmodel.Off(present.StoppedShare)
	least := func(stopped float64, burst bool) size {
		at := max(curve.Least(periodmodel.Point{StoppedShare: stopped, Delay: present.Delay}, burst), all.Low)
		return size{at, max(all.Low, at/(1+off)), at * (1 + off)}
	}
	same := max(bound, present.StoppedShare)
	n = need{limit: least(bound, bursts), lower: least(same, bursts), burst: least(same, true), mean: all.Low, bound: same, widest: c}
	if !served { // it is less than what came: nothing of it can go
		now := size{*c.ownLimit, *c.ownLimit, *c.ownLimit}
		n.lower, n.burst = now, now
	}
	return n, true
}

func (n *need) take(of need) {
	if n.widest == nil || of.lower.at > n.lower.at {
		n.widest, n.bound = of.widest, of.bound
	}
	n.limit.take(of.limit)
	n.lower.take(of.lower)
	n.burst.take(of.burst)
	n.mean = max(n.mean, of.mean)
}
