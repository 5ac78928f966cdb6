package report

import (
	"path"

	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
)

// CorePrice is what a core costs in an hour on some nodes.
type CorePrice struct {
	// Nodes is a pattern of their names, as path.Match takes it.
	Nodes string
	Hour  float64
}

// hourly is what a core costs in an hour on a node, by the first pattern that matches; false: none does.
func (o *Options) hourly(node string) (price float64, ok bool) {
	for _, p := range o.CorePrices {
		if ok, err := path.Match(p.Nodes, node); ok && err == nil {
			return p.Hour, true
		}
	}
	return 0, false
}

// perMonth is what cores cost that cost so much in an hour, of which each as much; nil: there are no prices.
func (o *Options) perMonth(hour, cores float64, remains needed) *view.PerMonth {
	if len(o.CorePrices) == 0 {
		return nil
	}
	m := view.PerMonth{Now: hour * view.HoursPerMonth}
	if cores > 0 {
		each := m.Now / cores
		m.Saved, m.SavedLow, m.SavedHigh = each*(cores-remains.after), each*(cores-remains.high), each*(cores-remains.low)
	}
	return &m
}

// perMonth is what all containers of a service cost.
func (s *service) perMonth(o *Options) *view.PerMonth {
	m := o.perMonth(s.keptHour, s.kept, needed{after: s.kept, low: s.kept, high: s.kept})
	for _, g := range s.groups {
		m.Add(o.perMonth(g.hour, g.cores, g.chosen.needed))
	}
	return m
}

// roundMonths cuts money as round does figures.
func roundMonths(m *view.PerMonth) {
	if m != nil {
		round(&m.Now, &m.Saved, &m.SavedLow, &m.SavedHigh)
	}
}
