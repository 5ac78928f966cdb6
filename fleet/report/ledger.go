package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand/leastlimit"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// service is what is known of one service's containers, and what those that run now have.
type service struct {
	// need is what rows tell; nil where that of none is known.
	need     *need
	workload workload

	groups []*group
	// kept are the cores of those of which it is not known what they need, keptHour what these cost in an hour.
	kept, keptHour                   float64
	sized, priced, unknown, byBounds int
	// young are those of the unknown that were observed for too short a time: what the others need is what these will.
	young int
	// on are its containers on each host; load is how much of its load a container has to carry when so many hosts fail.
	on    map[string]int
	load  float64
	fails int
	// pinned: one of them has exclusive CPUs, which are whole.
	pinned bool
}

// group are containers of a service that run now, of which the same tells what they need.
type group struct {
	// pricing is what tells it, of containers that have each as much; nil: their rows do.
	pricing     *pricing
	containers  int
	cores, each float64
	// hour is what the cores cost in an hour.
	hour   float64
	pinned bool
	// lower and burst are what remains of those of which rows tell it.
	lower, burst needed
	options      []option
	chosen       option
}

// option is a remedy, what remains with it, and what each container needs.
type option struct {
	remedy string
	needed
	limit size
	// period is that of a burst, where it is a longer one than the limit has; else 0.
	period time.Duration
}

// needed is what remains with one remedy. rounding is what it has above what is needed, failover what it has for hosts
// that fail.
type needed struct{ after, low, high, rounding, failover float64 }

func (n *needed) add(more needed) {
	n.after, n.low, n.high = n.after+more.after, n.low+more.low, n.high+more.high
	n.rounding, n.failover = n.rounding+more.rounding, n.failover+more.failover
}

func (n needed) times(k float64) needed {
	return needed{k * n.after, k * n.low, k * n.high, k * n.rounding, k * n.failover}
}

// remaining is what remains of what a container has that needs a limit, and carries so much of its load when hosts fail.
func remaining(limit size, load, now float64, whole func(float64) float64) needed {
	kept := func(cpus float64) float64 { return min(now, whole(cpus)) }
	loaded := limit.times(load)
	return needed{
		after: kept(loaded.cpus), low: kept(loaded.low), high: kept(loaded.high),
		rounding: kept(loaded.cpus) - min(now, loaded.cpus),
		failover: kept(loaded.cpus) - kept(limit.cpus),
	}
}

// survives is how much of its load each container of a service carries when so many hosts fail, those that have most of
// them. Where no container would be left, no limit helps, and it is the load when one host is left: of is how many fail.
func survives(on map[string]int, fail int) (load float64, of int) {
	of = max(0, min(fail, len(on)-1))
	have, lost := 0, 0
	for i, n := range slices.Backward(slices.Sorted(maps.Values(on))) {
		have += n
		if i >= len(on)-of {
			lost += n
		}
	}
	if have == 0 {
		return 1, 0
	}
	return float64(have) / float64(have-lost), of
}

// survivesAs is the same of so many containers instead of those that it has. ok is false where fewer hosts may fail.
func (s *service) survivesAs(containers, fail int) (load float64, ok bool) {
	load, of := survives(s.spread(containers), fail)
	return load, of >= s.fails
}

// add adds a container that runs now, each of whose cores costs so much in an hour.
func (s *service) add(c *sized, hour float64) {
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
	if c.unknown != "" {
		s.kept, s.keptHour = s.kept+now, s.keptHour+now*hour
		return
	}
	s.sized++
	g := s.groupOf(c)
	if g == nil {
		g = &group{pricing: c.pricing, each: now, pinned: c.pinned()}
		s.groups = append(s.groups, g)
	}
	g.containers, g.cores, g.hour = g.containers+1, g.cores+now, g.hour+now*hour
	whole := leastlimit.Tenths
	if c.pinned() {
		whole, s.pinned = leastlimit.Whole, true
	}
	if c.pricing != nil {
		s.priced++
		return
	}
	g.lower.add(remaining(s.need.lower, s.load, now, whole))
	_, burst, _ := s.need.bursts.best()
	g.burst.add(remaining(burst, s.load, now, whole))
}

// groupOf is the group that a container is of; nil: there is none.
func (s *service) groupOf(c *sized) *group {
	if i := slices.IndexFunc(s.groups, func(g *group) bool { return g.pricing == c.pricing }); i >= 0 && c.unknown == "" {
		return s.groups[i]
	}
	return nil
}

// choose chooses the remedy of each group, where so many hosts may fail.
func (s *service) choose(fail int) {
	for _, g := range s.groups {
		if g.pricing != nil {
			g.options = g.priced(s, fail)
		} else {
			g.options = []option{{remedy: view.Lower, needed: g.lower, limit: s.need.lower}}
			if period, limit, known := s.need.bursts.best(); known {
				g.options = append(g.options, option{view.Burst, g.burst, limit, period})
			}
		}
		g.chosen = cheapest(g.cores, g.options)
	}
}

// muchMore is which part of its cores a remedy must save beyond one that asks for less: it is one more setting to keep.
const muchMore = 0.05

// cheapest is the option that gives most back, of options that ask for more and more.
func cheapest(cores float64, options []option) option {
	const noise = 0.05 // half a step of a limit
	best := options[0]
	for _, o := range options[1:] {
		if o.after < best.after-max(noise, muchMore*cores) {
			best = o
		}
	}
	if best.after >= cores-noise {
		best.remedy, best.period = view.Leave, 0
	}
	return best
}

// remains is what all its containers have and need, and the remedy of most of the cores.
func (s *service) remains() (cores float64, remedy string, remains needed) {
	remains = needed{after: s.kept, low: s.kept, high: s.kept}
	cores = s.kept
	most := 0.0
	for _, g := range s.groups {
		cores += g.cores
		remains.add(g.chosen.needed)
		if remedy == "" || g.cores > most {
			remedy, most = g.chosen.remedy, g.cores
		}
	}
	return cores, remedy, remains
}

// limit is the least limit that is enough for each container, with nothing else or with a burst; false: it is not known.
// Where a quota stops containers today for longer than it may, it is the one that ends that.
func (s *service) limit(remedy string) (enough size, known bool) {
	if s.need != nil {
		enough, known = s.need.limit, true
		if remedy == view.Burst {
			_, enough, known = s.need.bursts.best()
		}
	}
	var priced size
	for _, g := range s.groups {
		if g.pricing == nil || remedy == view.Lower && known && enough.cpus > g.each {
			return enough, known
		}
		need := exactly(g.each)
		if i := slices.IndexFunc(g.options, func(o option) bool { return o.remedy == remedy }); i >= 0 {
			need = g.options[i].limit
			need.high = min(need.high, g.each)
		}
		priced.take(need)
	}
	if s.priced > 0 {
		return priced, true
	}
	return enough, known
}

// exclusive is how many CPUs of its own a pinned container of this service keeps; 0: that is not known.
func (s *service) exclusive(c *sized) int {
	g := s.groupOf(c)
	if g == nil {
		return 0
	}
	return int(min(*c.CoresNow, leastlimit.Whole(g.chosen.limit.times(s.load).cpus)))
}

// byRemedy adds up the groups by their remedies: each container whose need is known is in one line.
func byRemedy(services map[string]*service, o *Options) []view.ByRemedy {
	type key struct {
		remedy string
		period time.Duration
		priced bool
	}
	lines := map[key]*view.ByRemedy{}
	totals := map[key]*needed{}
	for _, s := range services {
		seen := map[key]bool{}
		for _, g := range s.groups {
			k := key{g.chosen.remedy, g.chosen.period, g.pricing != nil}
			if lines[k] == nil {
				lines[k], totals[k] = &view.ByRemedy{Remedy: k.remedy, PeriodMS: periodMS(k.period), Priced: k.priced,
					Asks: view.Asks(k.remedy)}, &needed{}
			}
			l := lines[k]
			if !seen[k] {
				seen[k] = true
				l.Services++
			}
			l.Containers, l.CoresNow = l.Containers+g.containers, l.CoresNow+g.cores
			totals[k].add(g.chosen.needed)
			if month := o.perMonth(g.hour, g.cores, g.chosen.needed); l.PerMonth == nil {
				l.PerMonth = month
			} else {
				l.PerMonth.Add(month)
			}
		}
	}
	shown := []view.ByRemedy{}
	for k, l := range lines {
		n := totals[k]
		l.CoresAfter, l.Saved, l.SavedLow, l.SavedHigh = n.after, l.CoresNow-n.after, l.CoresNow-n.high, l.CoresNow-n.low
		if !(k.priced && k.remedy == view.Pin) {
			l.Rounding = &n.rounding
		}
		if o.Failover > 0 {
			l.Failover = &n.failover
		}
		roundMonths(l.PerMonth)
		round(&l.CoresNow, &l.CoresAfter, &l.Saved, &l.SavedLow, &l.SavedHigh, l.Rounding, l.Failover)
		shown = append(shown, *l)
	}
	slices.SortFunc(shown, func(a, b view.ByRemedy) int {
		rows := func(l view.ByRemedy) int {
			if l.Priced {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(rows(a), rows(b)), cmp.Compare(b.Saved, a.Saved), cmp.Compare(a.Remedy, b.Remedy),
			cmp.Compare(view.Period(a.PeriodMS), view.Period(b.PeriodMS)))
	})
	return shown
}

// ledger adds up the services, and takes off what comes back and is of no use to others; nil: that is not known, and
// not taken off.
func ledger(services map[string]*service, o *Options, fragmented *float64) view.Ledger {
	cores, total, month := 0.0, needed{}, o.perMonth(0, 0, needed{})
	for _, s := range services {
		has, _, remains := s.remains()
		cores += has
		total.add(remains)
		month.Add(s.perMonth(o))
	}
	l := view.Ledger{
		CoresNow: cores, CoresAfter: total.after, Rounding: total.rounding,
		Saved: cores - total.after, SavedLow: cores - total.high, SavedHigh: cores - total.low, PerMonth: month,
	}
	if o.Failover > 0 {
		l.Failover = &total.failover
	}
	if fragmented != nil {
		l.Fragmentation = fragmented
		lost := func(off float64, saved, low, high *float64) {
			*saved, *low, *high = *saved-off, *low-min(off, *low), *high-off
		}
		lost(*fragmented, &l.Saved, &l.SavedLow, &l.SavedHigh)
		if month != nil && cores > 0 {
			lost(*fragmented*month.Now/cores, &month.Saved, &month.SavedLow, &month.SavedHigh)
		}
	}
	roundMonths(month)
	round(&l.CoresNow, &l.CoresAfter, &l.Rounding, &l.Saved, &l.SavedLow, &l.SavedHigh, l.Failover)
	return l
}
