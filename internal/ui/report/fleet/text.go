package fleet

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// most is how many services a table of the text has.
const most = 15

// Write writes the document as text.
func Write(w io.Writer, d Document, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Paragraph(head(d))
	if said := gone(d.Input); said != "" {
		p.Hanging("  ", said)
	}
	p.Section(p.Bolden("Cores at the same stops"))
	for _, line := range ledger(d) {
		p.Hanging("  ", line)
	}
	p.Hanging("  ", assumes(d))
	for _, r := range rankings(d.Services) {
		p.Section(p.Bolden(r.title))
		services(p, r)
	}
	if some, left := sharded(d.Services); len(some) > 0 {
		p.Section(p.Bolden(shardsTitle))
		t := table.New(shardColumns)
		for _, s := range some {
			t.Add(cells(shards(s)...))
		}
		writeTable(p, t, left)
		p.Paragraph(shardsAssume)
	}
	if len(d.Applied) > 0 {
		p.Section(p.Bolden("What remedies did"))
		t := table.New([]table.Column{{Name: "REMEDY"}, {Name: "CONTAINERS", Right: true},
			{Name: "STOPPED BEFORE", Right: true}, {Name: "AFTER", Right: true},
			{Name: "FORECAST", Right: true, Spare: 1}, {Name: "CORES BEFORE", Right: true}, {Name: "AFTER", Right: true}})
		for _, a := range d.Applied {
			t.Add(cells(outcome(a)...))
		}
		t.Fit(p.Columns)
		t.Write(p, true)
	}
	if len(d.Unknown) > 0 {
		p.Section(p.Bolden("Not known: these containers keep what they have"))
		for _, u := range d.Unknown {
			p.Hanging("  ", unknown(u))
		}
	}
	if left := LeftOut(d.Input); len(left) > 0 {
		p.Section(p.Bolden("Left out"))
		for _, line := range left {
			p.Hanging("  ", line)
		}
	}
	return p.Send(w)
}

// outcome is the cells of what a remedy did.
func outcome(a Applied) []string {
	return []string{text.Shown(a.Remedy), strconv.Itoa(a.Containers), percent(a.StoppedBefore), percent(a.StoppedAfter),
		percent(a.StoppedForecast),
		figure.Fixed(a.CoresBefore, 1), figure.Fixed(a.CoresAfter, 1)}
}

func cells(all ...string) (row []table.Cell) {
	for _, c := range all {
		row = append(row, table.Cell{Text: c})
	}
	return row
}

// head says what the report is of.
func head(d Document) string {
	const form = "2006-01-02 15:04"
	return fmt.Sprintf("%s of %s on %s, %s to %s UTC (%s)", text.Count(d.Containers, "container"),
		text.Count(len(d.Services), "service"), text.Count(d.Hosts, "host"),
		d.From.UTC().Format(form), d.Until.UTC().Format(form), text.Duration(rounded(d.Until.Sub(d.From))))
}

// ledger are the lines of the ledger.
func ledger(d Document) []string {
	l := d.Ledger
	lines := []string{
		fmt.Sprintf("now %.1f, after %.1f: %.1f saved, between %.1f and %.1f", l.CoresNow, l.CoresAfter, l.Saved, l.SavedLow, l.SavedHigh),
		fmt.Sprintf("rounding up takes %.1f of what is needed after", l.Rounding),
	}
	if l.Fragmentation == nil {
		lines = append(lines, "fragmentation of exclusive CPUs is not known from these rows, and not in these figures")
	} else {
		lines = append(lines, fmt.Sprintf("fragmentation of exclusive CPUs takes %.1f of what comes back: odd "+
			"threads of cores", *l.Fragmentation))
	}
	if l.Failover == nil {
		return append(lines, "nothing is kept for hosts that fail (--failover 1 keeps it)")
	}
	line := fmt.Sprintf("headroom for %s that fail takes %.1f", text.Count(d.FailoverHosts, "host"), *l.Failover)
	if d.FailoverHosts == 1 {
		line = fmt.Sprintf("headroom for any one host that fails takes %.1f", *l.Failover)
	}
	if d.FailoverNone > 0 {
		line += fmt.Sprintf("; %s would have no container left, and nothing is kept for that", text.Count(d.FailoverNone, "service"))
	}
	return append(lines, line)
}

// assumes says what the figures rest on.
func assumes(d Document) string {
	said := fmt.Sprintf("An estimate: 'after' is the least limit, with a burst of one quota where that is the "+
		"remedy, with which a quota stops no container "+
		"for a larger share of its time to work than now, or than %s, and delays no more work. It is modelled from "+
		"what came in each period, "+
		"and the bounds are what the model may be off by.", percent(&d.Bound))
	if d.ByBounds > 0 {
		said += fmt.Sprintf(" Rows of %s have no periods: there 'after' serves every order of what they wanted, the "+
			"lower bound is the mean of the busiest "+
			"five minutes, and the upper one the widest moment.", text.Count(d.ByBounds, "container"))
	}
	return said + " Rows have no latencies, and the time to come is taken to be like this one."
}

// ranking is the services in one order.
type ranking struct {
	title string
	by    func(Service) *float64
	of    []Service
	left  int // beyond most
}

// rankings are the orders that people look for, without those that have no service.
func rankings(all []Service) (found []ranking) {
	for _, r := range []struct {
		title string
		by    func(s Service) *float64
	}{
		{"Services that save most", saved},
		{"Most runnable threads per reserved core, while any is runnable", func(s Service) *float64 { return s.RunnablePerCore }},
		{"Stopped most", func(s Service) *float64 { return s.StoppedShare }},
		{"Waited most for CPUs that others held, or more threads of their own than CPUs",
			func(s Service) *float64 { return s.ContendedShareLow }},
	} {
		var some []Service
		for _, s := range all {
			if v := r.by(s); v != nil && *v > 0 {
				some = append(some, s)
			}
		}
		slices.SortStableFunc(some, func(a, b Service) int { return cmp.Or(cmp.Compare(*r.by(b), *r.by(a)), cmp.Compare(a.Name, b.Name)) })
		if len(some) > 0 {
			found = append(found, ranking{r.title, r.by, some[:min(most, len(some))], max(0, len(some)-most)})
		}
	}
	return found
}

// saved is what a service needs less than it has; nil: not known.
func saved(s Service) *float64 {
	if s.CoresNow == nil || s.CoresAfter == nil {
		return nil
	}
	return new(*s.CoresNow - *s.CoresAfter)
}

// columns are those of a table of services.
var columns = []table.Column{{Name: "SERVICE", Least: 30}, {Name: "CONTAINERS", Right: true, Spare: 3},
	{Name: "CORES", Right: true}, {Name: "AFTER", Right: true},
	{Name: "BETWEEN", Right: true, Spare: 2}, {Name: "LIMIT", Right: true, Spare: 4}, {Name: "REMEDY"},
	{Name: "RUNNABLE", Right: true}, {Name: "STOPPED", Right: true}, {Name: "STOP P99", Right: true, Spare: 6},
	{Name: "REQUEST P99", Right: true, Spare: 7}, {Name: "CONTENDED", Right: true, Spare: 5},
	{Name: "SPENT BY", Least: 8, Spare: 1}}

// figures are a service's cells, in the order of columns.
func figures(s Service) []string {
	remedy, spender := figure.Missing, figure.Missing
	if s.Remedy != nil {
		remedy = *s.Remedy
	}
	switch {
	case s.SpentBy != nil && *s.SpentBy == s.Name:
		spender = "itself"
	case s.SpentBy != nil:
		spender = shownName(*s.SpentBy)
	case s.StoppedBy != nil:
		spender = "a " + *s.StoppedBy + "'s"
	}
	return []string{shownName(s.Name), strconv.Itoa(s.Containers), figure.Fixed(s.CoresNow, 1),
		figure.Fixed(s.CoresAfter, 1), between(s.CoresAfterLow, s.CoresAfterHigh),
		figure.Fixed(s.Limit, 1), remedy, figure.Fixed(s.RunnablePerCore, 2), percent(s.StoppedShare),
		stopLength(s.StopP99), stopLength(s.RequestP99), percent(s.ContendedShareLow), spender}
}

// shardsTitle and shardsAssume stand around the table of shards.
const (
	shardsTitle  = "The same as half and as twice as many containers"
	shardsAssume = "Where requests come to containers independently of each other: wide moments of two seldom meet. " +
		"What each container costs by itself (memory, caches, a collector) is not in it."
)

// shardColumns are those of the table of shards.
var shardColumns = []table.Column{{Name: "SERVICE", Least: 24}, {Name: "CONTAINERS", Right: true},
	{Name: "AFTER", Right: true}, {Name: "HALF", Right: true}, {Name: "LIMIT", Right: true, Spare: 2},
	{Name: "CORES", Right: true}, {Name: "BETWEEN", Right: true, Spare: 1}, {Name: "TWICE", Right: true},
	{Name: "LIMIT", Right: true, Spare: 2}, {Name: "CORES", Right: true}, {Name: "BETWEEN", Right: true, Spare: 1}}

// shards are a service's cells, in the order of shardColumns.
func shards(s Service) []string {
	row := []string{shownName(s.Name), strconv.Itoa(s.Containers), figure.Fixed(s.CoresAfter, 1)}
	for _, of := range []*Shards{s.Half, s.Double} {
		if of == nil {
			row = append(row, figure.Missing, figure.Missing, figure.Missing, figure.Missing)
			continue
		}
		row = append(row, strconv.Itoa(of.Containers), figure.Fixed(&of.Limit, 1), figure.Fixed(&of.Cores, 1),
			between(&of.CoresLow, &of.CoresHigh))
	}
	return row
}

// sharded are the services that would save most as half as many containers, and how many more would save something.
func sharded(all []Service) (some []Service, left int) {
	for _, s := range all {
		if s.Half != nil && s.CoresAfter != nil && s.Half.Cores < *s.CoresAfter {
			some = append(some, s)
		}
	}
	saves := func(s Service) float64 { return *s.CoresAfter - s.Half.Cores }
	slices.SortStableFunc(some, func(a, b Service) int { return cmp.Or(cmp.Compare(saves(b), saves(a)), cmp.Compare(a.Name, b.Name)) })
	return some[:min(most, len(some))], max(0, len(some)-most)
}

func services(p *page.Page, r ranking) {
	t := table.New(columns)
	for _, s := range r.of {
		t.Add(cells(figures(s)...))
	}
	writeTable(p, t, r.left)
}

// writeTable writes a table of which so many rows are left out.
func writeTable(p *page.Page, t *table.Table, left int) {
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
	more(p, left)
}

// more says how many lines are left out.
func more(p *page.Page, left int) {
	if left > 0 {
		p.Paragraph(fmt.Sprintf("and %d more (--json has all)", left))
	}
}

// shownName is a stranger's name, or that there is none.
func shownName(name string) string {
	if name == "" {
		return "(no name)"
	}
	return text.Shown(name)
}

func between(low, high *float64) string {
	if low == nil || high == nil {
		return figure.Missing
	}
	return fmt.Sprintf("%.1f-%.1f", *low, *high)
}

// stopLength is how long a stop takes.
func stopLength(ms *float64) string {
	if ms == nil {
		return figure.Missing
	}
	return text.Duration(time.Duration(*ms * float64(time.Millisecond)))
}

// percent is a share of the time.
func percent(share *float64) string {
	switch {
	case share == nil:
		return figure.Missing
	case *share > 0 && *share < 0.0005:
		return "<0.1 %"
	}
	return strconv.FormatFloat(100**share, 'f', 1, 64) + " %"
}

func unknown(u Unknown) string {
	return fmt.Sprintf("%s with %.1f cores: %s", text.Count(u.Containers, "container"), u.Cores, u.Reason)
}

// LeftOut says what of the files does not count.
func LeftOut(in Input) (lines []string) {
	for _, f := range in.Refused {
		lines = append(lines, fmt.Sprintf("%s: %s", text.Sanitize(f.File, 0), text.Sanitize(f.Why, 0)))
	}
	if in.RefusedMore > 0 {
		lines = append(lines, "and "+text.Count(in.RefusedMore, "file")+" more")
	}
	for _, p := range in.Problems {
		lines = append(lines, fmt.Sprintf("%s, the first is row %d of %s: %s", text.Count(int(p.Rows), "row"), p.Row,
			text.Sanitize(p.File, 0), p.Why))
	}
	if in.Copies > 0 {
		lines = append(lines, text.CountOf(int(in.Copies), "copy of a row", "copies of rows"))
	}
	if in.Overlapping > 0 {
		lines = append(lines, text.Count(int(in.Overlapping), "row")+" of five minutes that another program observed too")
	}
	for _, h := range in.Ahead {
		lines = append(lines, fmt.Sprintf("nothing of host %s, but its clock is %s ahead", text.Shown(h.Host),
			text.Duration(time.Duration(h.Seconds*float64(time.Second)))))
	}
	if in.AheadMore > 0 {
		lines = append(lines, "nor of "+text.Count(in.AheadMore, "host")+" more with such clocks")
	}
	return lines
}

// gone says which hosts and containers are no part of what runs now; "": none.
func gone(in Input) string {
	if in.HostsGone == 0 {
		return ""
	}
	const some = 5
	var names []string
	for _, h := range in.Gone[:min(len(in.Gone), some)] {
		names = append(names, text.Shown(h.Host))
	}
	list := strings.Join(names, ", ")
	if more := in.HostsGone - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("gone: %s on %s without rows of the last %s, which ended or whose rows are not here yet: %s",
		text.Count(in.ContainersGone, "container"), text.Count(in.HostsGone, "host"), text.Duration(GoneAfter), list)
}

// rounded is a length to the minute, below two minutes to the second.
func rounded(d time.Duration) time.Duration {
	if d < 2*time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
