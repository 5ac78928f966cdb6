package report

import (
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// service is what is known of one service's containers, and what those that run now have.
type service struct {
	// need is nil where that of none is known.
	need     *need
	workload workload

	cores                    float64
	lower, burst             needed
	sized, unknown, byBounds int
	// young are those of the unknown that were observed for too short a time: what the others need is what these will.
	young int
	// on are its containers on each host; load is how much of its load a container has to carry when hosts fail.
	on   map[string]int
	load float64
	// pinned: one of them has exclusive CPUs, which are whole.
	pinned bool
}

// needed is what remains with one remedy. rounding is what it has above what is needed, failover what it has for hosts
// that fail.
type needed struct{ after, low, high, rounding, failover float64 }

func (n *needed) add(more needed) {
	n.after, n.low, n.high = n.after+more.after, n.low+more.low, n.high+more.high
	n.rounding, n.failover = n.rounding+more.rounding, n.failover+more.failover
}

// survives is how much of its load each container of a service carries when so many hosts fail, those that have most of
// them. ok is false where none is left: then no limit helps, and it stays 1.
func survives(on map[string]int, fail int) (load float64, ok bool) {
	have, lost := 0, 0
	for i, n := range slices.Backward(slices.Sorted(maps.Values(on))) {
		have += n
		if i >= len(on)-fail {
			lost += n
		}
	}
	if have == lost {
		return 1, have == 0
	}
	return float64(have) / float64(have-lost), true
}

// add adds a container that runs now.
func (s *service) add(c *sized) {
	s.workload.add(c)
	if c.unknown != "" {
		s.unknown++
	}
	if c.unknown == tooShort {
		s.young++
	}
	if c.byBounds {
		s.byBounds++
	}
	if c.CoresNow == nil {
		return
	}
	now := *c.CoresNow
	s.cores += now
	if c.unknown != "" {
		keeps := needed{after: now, low: now, high: now}
		s.lower.add(keeps)
		s.burst.add(keeps)
		return
	}
	s.sized++
	whole := leastlimit.Tenths
	if c.pinned() {
		whole, s.pinned = leastlimit.Whole, true
	}
	kept := func(cpus float64) float64 { return min(now, whole(cpus)) }
	remains := func(limit size) needed {
		loaded := limit.times(s.load)
		return needed{
			after: kept(loaded.cpus), low: kept(loaded.low), high: kept(loaded.high),
			rounding: kept(loaded.cpus) - min(now, loaded.cpus),
			failover: kept(loaded.cpus) - kept(limit.cpus),
		}
	}
	s.lower.add(remains(s.need.lower))
	s.burst.add(remains(s.need.burst))
}

// muchMore is which part of its cores a burst must save beyond a lower limit alone: it is one more setting to keep.
const muchMore = 0.05

// remedy is what gives most back, what remains with it, and the limit of each container.
func (s *service) remedy() (name string, remains needed, limit size) {
	const noise = 0.05 // half a step of a limit
	var n need
	if s.need != nil {
		n = *s.need
	}
	switch {
	case s.burst.after < s.lower.after-max(noise, muchMore*s.cores):
		return view.Burst, s.burst, n.burst
	case s.lower.after < s.cores-noise:
		return view.Lower, s.lower, n.lower
	}
	return view.Leave, s.lower, n.lower
}

// exclusive is how many CPUs of its own a pinned container of this service keeps.
func (s *service) exclusive(now float64) int {
	_, _, limit := s.remedy()
	return int(min(now, leastlimit.Whole(limit.times(s.load).cpus)))
}

// ledger adds up the services, with what is kept for so many hosts that fail, and takes off what comes back and is of
// no use to others; nil: that is not known, and not taken off.
func ledger(services map[string]*service, fail int, fragmented *float64) view.Ledger {
	cores, total := 0.0, needed{}
	for _, s := range services {
		cores += s.cores
		_, remains, _ := s.remedy()
		total.add(remains)
	}
	l := view.Ledger{
		CoresNow: cores, CoresAfter: total.after, Rounding: total.rounding,
		Saved: cores - total.after, SavedLow: cores - total.high, SavedHigh: cores - total.low,
	}
	if fail > 0 {
		l.Failover = &total.failover
	}
	if fragmented != nil {
		l.Fragmentation = fragmented
		l.Saved -= *fragmented
		l.SavedLow -= min(*fragmented, l.SavedLow)
		l.SavedHigh -= *fragmented
	}
	round(&l.CoresNow, &l.CoresAfter, &l.Rounding, &l.Saved, &l.SavedLow, &l.SavedHigh, l.Failover)
	return l
}
