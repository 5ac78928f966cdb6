package report

import (
	"maps"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	"github.com/unthrottle/unthrottle/internal/demand/periodmodel"
)

// sized is a container, with what is known of its demand.
type sized struct {
	ContainerNo                                               int64
	Cluster, Node, Namespace, Pod, Container, Service, Remedy string
	LimitCPUs, OwnLimitCPUs, RequestCPUs, CoresNow            *float64
	AllowedCPUs                                               *int32
	RunsNow                                                   int
	// Imported is 1 where each of its rows was made of counters of kubelets: one reading for a whole slot.
	Imported int
	// From when to when it has rows.
	FirstMS, UntilMS                                    int64
	MeasuredSeconds, StoppedHighSeconds, WidestMeanCPUs *float64
	// What its periods tell: nil, and no others, where that was not kept.
	CandidateSeconds, CandidatePeriods *float64
	CandidateFrom                      *int32
	others                             []periodmodel.Outcome

	width, wanted []leastlimit.Level
	// pricing is what recordings tell it needs, after priceTogether with those like it; nil: nothing.
	pricing *pricing
	// unknown is why nothing can be said of it; "": something can. byBounds: its periods do not tell what it needs.
	unknown  string
	byBounds bool
	// shard is the last of those that took each other's place, itself or another: nil before they are known.
	shard *sized
}

// Reasons for which a container's need is not known. Users read them.
const (
	noCores     = "neither a limit nor a request of its own is known"
	noLimit     = "no limit of its own"
	otherLimit  = "a pod's, slice's or inner limit is below its own"
	capped      = "a remedy in force bounds its width, or lifts its quota"
	notMeasured = "demand was not measured: the probe needs root and BPF"
	ofCounters  = "imported: counters of kubelets do not tell its demand, the agent on its node does"
	tooShort    = "its limit, CPUs and remedy of now were observed for less than five minutes"
	idle        = "it had next to nothing to do"
)

// Below these a demand says nothing: a slot less a few rounds, and a second of work.
const (
	leastMeasured = 285.0
	leastBusy     = 1.0
)

// unfit is the reason for which nothing can be said of it, whatever is known of its demand; "": something may.
func (c *sized) unfit() string {
	inForce, _ := remedy.Find(remedy.Kind(c.Remedy))
	switch {
	case c.CoresNow == nil:
		return noCores
	case c.Remedy != "" && !inForce.ShowsDemand:
		return capped
	case !c.pinned() && c.OwnLimitCPUs == nil:
		return noLimit
	case !c.pinned() && c.LimitCPUs != nil && *c.LimitCPUs < *c.OwnLimitCPUs*(1-1e-6):
		return otherLimit
	}
	return ""
}

// why is the reason for which its rows tell nothing; "": they do.
func (c *sized) why(demand *leastlimit.Demand) string {
	switch unfit := c.unfit(); {
	case unfit != "":
		return unfit
	case c.MeasuredSeconds == nil && c.Imported == 1:
		return ofCounters
	case c.MeasuredSeconds == nil || c.StoppedHighSeconds == nil:
		return notMeasured
	case *c.MeasuredSeconds < leastMeasured || c.WidestMeanCPUs == nil: // a row of less than a minute has no mean that counts
		return tooShort
	case demand.BusySeconds() < leastBusy:
		return idle
	}
	return ""
}

func (c *sized) pinned() bool { return c.Remedy == string(remedy.Pin) }

// demand is what the model takes.
func (c *sized) demand() leastlimit.Demand {
	d := leastlimit.Demand{Width: c.width, Wanted: c.wanted}
	if c.WidestMeanCPUs != nil {
		d.WidestMean = *c.WidestMeanCPUs
	}
	if c.StoppedHighSeconds != nil {
		d.StoppedSeconds = *c.StoppedHighSeconds
	}
	if c.AllowedCPUs != nil {
		d.AllowedCPUs = *c.AllowedCPUs
	}
	return d
}

// leastKnown is the part of the time for which it must be known what came in which period.
const leastKnown = 0.9

// curve is what other limits would have done; nil: periods were not kept, or tell of too little of the time.
func (c *sized) curve(demand *leastlimit.Demand) *periodmodel.Curve {
	if c.pinned() || c.CandidateSeconds == nil || c.CandidatePeriods == nil || c.CandidateFrom == nil ||
		*c.CandidateSeconds < leastKnown**c.MeasuredSeconds {
		return nil
	}
	curve := &periodmodel.Curve{Busy: time.Duration(demand.BusySeconds() * float64(time.Second)), Periods: *c.CandidatePeriods}
	for _, o := range c.others {
		curve.Add(o)
	}
	return curve
}

// size is a limit that is enough, with its bounds.
type size struct{ cpus, low, high float64 }

// exactly is a size without doubt.
func exactly(cpus float64) size { return size{cpus, cpus, cpus} }

func (s *size) take(other size) {
	s.cpus, s.low, s.high = max(s.cpus, other.cpus), max(s.low, other.low), max(s.high, other.high)
}

// times is a size for so much of the load. A limit that is large enough for one is, so many times, for several: that is
// safe, since what comes by chance evens out.
func (s size) times(load float64) size { return size{load * s.cpus, load * s.low, load * s.high} }

// need is what one container of a service needs: the most of what is known of any.
type need struct {
	// limit stops it for at most the bound. lower does so, or stops it no longer than now where that is more; bursts do
	// that with a burst of one quota.
	limit, lower size
	bursts       bursts
	// mean is what it uses in its busiest five minutes, in CPUs; bound is the share of its time to work for which a quota
	// may stop it.
	mean, bound float64
	// widest is the container of which lower is. twice is how much more is needed by one that does what two such do.
	widest *sized
	twice  float64
}

// need is what the container needs: its periods tell, else all orders of its demand are bounded.
func (c *sized) need(demand *leastlimit.Demand, bound float64) need {
	bounds := demand.Least(bound)
	curve := c.curve(demand)
	if c.byBounds = curve == nil; c.byBounds {
		safe := size{bounds.Safe, bounds.Low, bounds.High}
		return need{limit: safe, lower: safe, mean: bounds.Low, bound: bound, widest: c}
	}
	now := periodmodel.Setting{Burst: c.Remedy == string(remedy.Burst)}
	present, served := curve.At(*c.OwnLimitCPUs, now)
	off := periodmodel.Off(present.StoppedShare)
	least := func(stopped float64, with periodmodel.Setting) size {
		cpus := max(curve.Least(periodmodel.Point{StoppedShare: stopped, Delay: present.Delay}, with), bounds.Low)
		return size{cpus, max(bounds.Low, cpus/(1+off)), cpus * (1 + off)}
	}
	same := max(bound, present.StoppedShare)
	n := need{
		limit: least(bound, now), lower: least(same, now), bursts: bursts{0: least(same, periodmodel.OwnBurst)},
		mean: bounds.Low, bound: same, widest: c,
	}
	for _, l := range curve.Long {
		n.bursts[l.Period] = least(same, periodmodel.Setting{Burst: true, Period: l.Period})
	}
	if !served { // it is less than what came: nothing of it can go
		n.lower, n.bursts = exactly(*c.OwnLimitCPUs), bursts{0: exactly(*c.OwnLimitCPUs)}
	}
	return n
}

func (n *need) take(other need) {
	if n.widest == nil {
		n.bursts = maps.Clone(other.bursts)
	}
	n.bursts.take(other.bursts)
	if n.widest == nil || other.lower.cpus > n.lower.cpus {
		n.widest, n.bound = other.widest, other.bound
	}
	n.limit.take(other.limit)
	n.lower.take(other.lower)
	n.mean = max(n.mean, other.mean)
}
