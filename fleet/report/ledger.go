package report

import (
	"maps"
	"slices"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// sum is what the containers of one service have and need now.
type sum struct {
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

// needed is what remains with one remedy. rounding is what it has above what is needed, failover what it has for hosts that fail.
type needed struct{ after, low, high, rounding, failover float64 }

func (n *needed) add(of needed) {
	n.after, n.low, n.high, n.rounding, n.failover = n.after+of.after, n.low+of.low, n.high+of.high, n.rounding+of.rounding, n.failover+of.failover
}

// survives is how much of its load each container of a service carries when so many hosts fail, those that have most of them. ok is false where
// none is left: then no limit helps, and it stays 1.
func survives(on map[string]int, fail int) (load float64, ok bool) {
	all, lost := 0, 0
	for i, n := range slices.Backward(slices.Sorted(maps.Values(on))) {
		all += n
		if i >= len(on)-fail {
			lost += n
		}
	}
	if all == lost {
		return 1, all == 0
	}
	return float64(all) / float64(all-lost), true
}

func (s *sum) add(c *sized, why string, n *need) {
	if c.cores == nil {
		s.unknown++
		return
	}
	now := *c.cores
	s.cores += now
	if why == tooShort {
		s.young++
	}
	if why != "" {
		s.unknown++
		s.lower.add(needed{after: now, low: now, high: now})
		s.burst.add(needed{after: now, low: now, high: now})
		return
	}
	s.sized++
	whole := leastlimit.Tenths
	if c.pinned() {
		whole, s.pinned = leastlimit.Whole, true
	}
	at := func(cpus float64) float64 { return min(now, whole(cpus)) }
	of := func(n size) needed {
		all := n.times(s.load)
		return needed{at(all.at), at(all.low), at(all.high), at(all.at) - min(now, all.at), at(all.at) - at(n.at)}
	}
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

// exclusive is how many CPUs of its own a pinned container of this service keeps.
func (s *sum) exclusive(now float64, n *need) int {
	of := n.lower
	if remedy, _ := s.remedy(); remedy == view.Burst {
		of = n.burst
	}
	return int(min(now, leastlimit.Whole(of.times(s.load).at)))
}

// ledger adds up the services, with what is kept for so many hosts that fail, and takes off what comes back and is of no use to others; nil: that is
// not known, and not taken off.
func ledger(all map[string]*sum, fail int, fragmented *float64) view.Ledger {
	cores, total := 0.0, needed{}
	for _, s := range all {
		cores += s.cores
		_, of := s.remedy()
		total.add(of)
	}
	l := view.Ledger{CoresNow: cores, CoresAfter: total.after, Rounding: total.rounding,
		Saved: cores - total.after, SavedLow: cores - total.high, SavedHigh: cores - total.low}
	if fail > 0 {
		l.Failover = &total.failover
	}
	if fragmented != nil {
		l.Fragmentation = fragmented
		l.Saved, l.SavedLow, l.SavedHigh = l.Saved-*fragmented, l.SavedLow-min(*fragmented, l.SavedLow), l.SavedHigh-*fragmented
	}
	round(&l.CoresNow, &l.CoresAfter, &l.Rounding, &l.Saved, &l.SavedLow, &l.SavedHigh, l.Failover)
	return l
}
