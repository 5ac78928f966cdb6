package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

// maxListed bounds the services of the page.
const maxListed = 1000

// serviceList is the page's table of services, each with a view of its own.
type serviceList struct {
	Heads []pageHead
	Rows  []listedService
	More  int
}

// listedService is a service in the list, its name first, and what its own view has.
type listedService struct {
	Cells   []string
	Facts   []webpage.Fact
	Bars    []pageBar // cores now, and with each remedy
	Spreads []spreadList
	Pools   *pageTable
}

// inList are the columns of the list, beside what is saved; the others are in the views.
var inList = []string{"SERVICE", "CONTAINERS", "CORES", "AFTER", "REMEDY", "RUNNABLE", "STOPPED", "CONTENDED", "SAVED A MONTH"}

// newServiceList lists the services that save most first; nil: there are none.
func newServiceList(d Document) *serviceList {
	if len(d.Services) == 0 {
		return nil
	}
	var listed []column[Service]
	var others []column[Service]
	for _, c := range servicesColumns(d) {
		if !slices.Contains(inList, c.Name) {
			if c.Name != "BETWEEN" { // a bar shows that
				others = append(others, c)
			}
			continue
		}
		if listed = append(listed, c); c.Name == "AFTER" {
			listed = append(listed, figures("SAVED", 0, func(s Service) string { return figure.Fixed(saved(s), 1) }))
		}
	}
	services := slices.SortedStableFunc(slices.Values(d.Services), func(a, b Service) int {
		most := func(v *float64) float64 {
			if v == nil {
				return -1
			}
			return *v
		}
		return cmp.Or(cmp.Compare(most(saved(b)), most(saved(a))), cmp.Compare(most(b.CoresNow), most(a.CoresNow)),
			cmp.Compare(a.Name, b.Name))
	})
	l := &serviceList{Heads: heads(listed), More: max(0, len(services)-maxListed)}
	for _, s := range services[:len(services)-l.More] {
		row := listedService{Cells: cells(listed, s), Facts: facts(s, others), Bars: serviceBars(s), Spreads: spreadLists(s)}
		if len(s.Pools) > 0 {
			row.Pools = newPageTable("Thread pools", poolColumns, s.Pools, 0)
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

// poolColumns are the columns of a service's own pools.
var poolColumns = slices.DeleteFunc(slices.Clone(defaultColumns), func(c column[Default]) bool {
	return c.Name == "SERVICES" || c.Name == "CORES"
})

// facts are what is known of a service beyond the list.
func facts(s Service, columns []column[Service]) (known []webpage.Fact) {
	add := func(name, value string) {
		if value != figure.Missing {
			known = append(known, webpage.Fact{Name: name, Value: value})
		}
	}
	if w := s.Workload; w != nil {
		add("workload", shownName(fmt.Sprintf("%s %s/%s, container %s", w.Kind, w.Namespace, w.Name, w.Container)))
	}
	for i, head := range heads(columns) {
		add(head.Label, columns[i].cell(s))
	}
	add("keeps", judged(s))
	add("slower at", percent(s.KneeShare))
	if o := s.Objective; o != nil {
		add("objective", fmt.Sprintf("%s needs %.1f cores, between %s", o.bound(), o.Cores, between(&o.CoresLow, o.CoresHigh)))
	}
	if s.Unknown > 0 {
		add("not known of", fmt.Sprint(s.Unknown))
	}
	return known
}

// serviceBars are the cores of a service now, with each remedy, and as another number of containers; none without cores.
func serviceBars(s Service) (bars []pageBar) {
	if s.CoresNow == nil || !(*s.CoresNow > 0) {
		return nil
	}
	all := *s.CoresNow
	for _, shards := range []*Shards{s.Half, s.Double} {
		if shards != nil {
			all = max(all, shards.CoresHigh)
		}
	}
	add := func(name string, cores, low, high float64, chosen bool) {
		bars = append(bars, pageBar{Name: name, Value: fmt.Sprintf("%.1f, %s", cores, between(&low, &high)), Part: 100 * cores / all,
			Chosen: chosen}.ranged(low, high, all))
	}
	bars = append(bars, pageBar{Name: "now", Value: fmt.Sprintf("%.1f", *s.CoresNow), Part: 100 * *s.CoresNow / all})
	for _, p := range s.Prices { // of most of its containers: the others keep what they have, or need what rows tell
		rest := *s.CoresNow - p.CoresNow
		name := named(p.Remedy, p.PeriodMS)
		if rest > 0.05 {
			name += fmt.Sprintf(", of %d", p.Containers)
		}
		add(name, p.CoresAfter, p.CoresAfterLow, p.CoresAfterHigh, s.Remedy != nil && p.Remedy == *s.Remedy)
	}
	if len(s.Prices) == 0 && s.CoresAfter != nil && s.CoresAfterLow != nil && s.CoresAfterHigh != nil {
		add(s.remedyNamed(), *s.CoresAfter, *s.CoresAfterLow, *s.CoresAfterHigh, true)
	}
	for _, other := range []struct {
		name   string
		shards *Shards
	}{{"half as many", s.Half}, {"twice as many", s.Double}} {
		if x := other.shards; x != nil {
			add(other.name, x.Cores, x.CoresLow, x.CoresHigh, false)
		}
	}
	return bars
}

// spreadList are the figures of a service over its hosts or its shards.
type spreadList struct {
	Title string
	Bars  []pageBar
}

// spreadLists are those of which something is known.
func spreadLists(s Service) (lists []spreadList) {
	add := func(parts string, n int, over *Spread) {
		if bars := spreadBars(n, over); len(bars) > 0 {
			lists = append(lists, spreadList{fmt.Sprintf("Over %d %s", n, parts), bars})
		}
	}
	if o := s.OverHosts; o != nil {
		add("hosts", o.Hosts, o)
	}
	if o := s.OverShards; o != nil {
		add("shards", o.Shards, o)
	}
	return lists
}

// spreadBars have a bar to the middle of each figure, and the range from the least to the most: over n. Both shares have one
// scale.
func spreadBars(n int, over *Spread) (bars []pageBar) {
	shares := 0.0
	for _, r := range []*Range{over.Stopped, over.Contended} {
		if r != nil {
			shares = max(shares, r.Most)
		}
	}
	for _, f := range over.figures() {
		r, all := f.Range, shares
		if r != nil && r == over.RequestP99 {
			all = r.Most
		}
		if r == nil || all == 0 {
			continue
		}
		value := f.shown(r)
		if r.Most > 0 {
			value += ", most on " + r.on()
		}
		if r.Of < n {
			value += fmt.Sprintf(", of %d", r.Of)
		}
		bars = append(bars, pageBar{Name: f.name, Value: value, Part: 100 * r.Median / all}.ranged(r.Least, r.Most, all))
	}
	return bars
}
