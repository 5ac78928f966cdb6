package fleet

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// Write writes the document as text.
func Write(w io.Writer, d Document, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Paragraph(head(d))
	if line := gone(d.Input); line != "" {
		p.Hanging("  ", line)
	}
	p.Section(p.Bolden("C" + strings.TrimPrefix(basis(d), "c")))
	for _, line := range append(ledger(d), coverage(d)...) {
		p.Hanging("  ", line)
	}
	p.Hanging("  ", assumes(d))
	if d.Priced > 0 {
		p.Section(p.Bolden(byRemedyTitle))
		newTable(p, remedyColumns(d), d.ByRemedy).Missing(p)
		p.Paragraph(asks(d.ByRemedy))
	}
	if rows, left := ranked(d.Services, savedAtP99); len(rows) > 0 {
		p.Section(p.Bolden(pricesTitle))
		newTable(p, priceColumns, rows).Missing(p)
		more(p, left)
	}
	if rows, left := ranked(d.Services, slack); len(rows) > 0 {
		p.Section(p.Bolden(objectiveTitle))
		newTable(p, objectiveColumns, rows).Missing(p)
		more(p, left)
	}
	for _, r := range rankings(d.Services) {
		p.Section(p.Bolden(r.title))
		newTable(p, servicesColumns(d), r.rows).Missing(p)
		more(p, r.left)
	}
	unlike := unlikeTables(d.Services)
	for _, t := range unlike {
		p.Section(p.Bolden(t.title))
		newTable(p, t.columns, t.rows).Missing(p)
		more(p, t.left)
	}
	if len(unlike) > 0 {
		p.Paragraph(spreadAssumes)
	}
	if rows, left := ranked(d.Services, savedByHalf); len(rows) > 0 {
		p.Section(p.Bolden(shardsTitle))
		newTable(p, shardColumns, rows).Missing(p)
		more(p, left)
		p.Paragraph(shardsAssume)
	}
	if rows, left := tooWide(d.Defaults); len(rows) > 0 {
		p.Section(p.Bolden(defaultsTitle))
		newTable(p, defaultColumns, rows).Missing(p)
		more(p, left)
		p.Paragraph(defaultsAssume(d))
	}
	if len(d.Applied) > 0 {
		p.Section(p.Bolden(appliedTitle))
		newTable(p, appliedColumns, d.Applied).Missing(p)
		p.Paragraph(appliedAssumes)
		if days := appliedDays(d.Applied); len(days) > 0 {
			p.Section(p.Bolden(appliedDaysTitle))
			newTable(p, appliedDayColumns, days)
		}
	}
	if len(d.Unknown) > 0 {
		p.Section(p.Bolden("Not known: these containers keep what they have"))
		for _, u := range d.Unknown {
			p.Hanging("  ", unknown(u))
		}
	}
	writeLeftOut(p, d.Input)
	return p.Send(w)
}

// head says what the report is of.
func head(d Document) string {
	const form = "2006-01-02 15:04"
	return fmt.Sprintf("%s of %s on %s at %s, rows of %s to %s UTC (%s)", text.Count(d.Containers, "container"),
		text.Count(len(d.Services), "service"), text.Count(d.Hosts, "host"), d.Now.UTC().Format("15:04"),
		d.From.UTC().Format(form), d.Until.UTC().Format(form), text.Duration(rounded(d.Until.Sub(d.From))))
}

// ledger are the lines of the ledger.
func ledger(d Document) []string {
	l := d.Ledger
	lines := []string{
		fmt.Sprintf("now %.1f, after %.1f: %.1f saved, between %.1f and %.1f", l.CoresNow, l.CoresAfter, l.Saved, l.SavedLow,
			l.SavedHigh),
		fmt.Sprintf("rounding up takes %.1f of what is needed after", l.Rounding),
	}
	if m := l.PerMonth; m != nil {
		line := fmt.Sprintf("in a month of %d h %s, of which %s is saved, between %s and %s", HoursPerMonth, money(m.Now), money(m.Saved),
			money(m.SavedLow), money(m.SavedHigh))
		if d.CoresWithoutPrice > 0 {
			line += fmt.Sprintf("; %.1f cores are on nodes without a price, and not in these figures", d.CoresWithoutPrice)
		}
		lines = slices.Insert(lines, 1, line)
	}
	if l.Fragmentation == nil {
		lines = append(lines, "fragmentation of exclusive CPUs is not known from these rows, and not in these figures")
	} else {
		lines = append(lines,
			fmt.Sprintf("fragmentation of exclusive CPUs takes %.1f of what comes back: odd threads of cores", *l.Fragmentation))
	}
	if l.Failover == nil {
		return append(lines, "nothing is kept for hosts that fail (--failover 1 keeps it)")
	}
	line := fmt.Sprintf("headroom for %s that fail takes %.1f", text.Count(d.FailoverHosts, "host"), *l.Failover)
	if d.FailoverHosts == 1 {
		line = fmt.Sprintf("headroom for any one host that fails takes %.1f", *l.Failover)
	}
	if d.FailoverNone > 0 {
		has := "have"
		if d.FailoverNone == 1 {
			has = "has"
		}
		line += fmt.Sprintf("; %s %s no more hosts than that: enough is kept for one host that is left",
			text.Count(d.FailoverNone, "service"), has)
	}
	return append(lines, line)
}

// basis is what the cores are compared at.
func basis(d Document) string {
	if d.Priced == 0 {
		return "cores at the same stops"
	}
	return "cores at the same p99, and at the same stops where it is not known"
}

// coverage says of how many containers recordings tell what they need; none: of none.
func coverage(d Document) []string {
	if d.Priced == 0 {
		return nil
	}
	cores := 0.0
	for _, r := range d.ByRemedy {
		if r.Priced {
			cores += r.CoresNow
		}
	}
	return []string{fmt.Sprintf("recordings tell what %d of %s with %.1f of the cores need at the same p99", d.Priced,
		text.Count(d.Containers, "container"), cores)}
}

// assumes says what the figures rest on.
func assumes(d Document) string {
	line := fmt.Sprintf("An estimate: 'after' is the least limit, with a burst of one quota, in the period told, where that is the remedy, "+
		"with which a quota stops no container for a larger share of its time to work than now, or than %s, and delays no "+
		"more work. It is modelled from what came in each period, and the bounds are what the model may be off by.",
		percent(&d.Bound))
	if d.Priced > 0 {
		line = "An estimate: 'after' is the least with the remedy with which a replay of a recording of a busy time keeps the " +
			"p99 within 5 %, or the service's own objective, and serves as much; the bounds are those of 90 % of other " +
			"times. Without a recording: " +
			strings.TrimPrefix(line, "An estimate: ")
	}
	if d.ByBounds > 0 {
		line += fmt.Sprintf(" Rows of %s have no periods: there 'after' serves every order of what they wanted, the lower "+
			"bound is the mean of the busiest five minutes, and the upper one the widest moment.",
			text.Count(d.ByBounds, "container"))
	}
	return line + " Rows have no latencies, and the time to come is taken to be like this one."
}

func unknown(u Unknown) string {
	return fmt.Sprintf("%s with %.1f cores: %s", text.Count(u.Containers, "container"), u.Cores, u.Reason)
}

// writeLeftOut is the section of what does not count.
func writeLeftOut(p *page.Page, in Input) {
	if left := LeftOut(in); len(left) > 0 {
		p.Section(p.Bolden("Left out"))
		for _, line := range left {
			p.Hanging("  ", line)
		}
	}
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
	if in.Later > 0 {
		lines = append(lines, text.Count(int(in.Later), "row")+" of after the moment that was asked for")
	}
	for _, h := range in.Ahead {
		lines = append(lines, fmt.Sprintf("nothing of host %s, but its rows are %s ahead: its clock is, or the rows of "+
			"others are not here yet", text.Shown(h.Host),
			text.Duration(time.Duration(h.Seconds*float64(time.Second)))))
	}
	if in.AheadMore > 0 {
		lines = append(lines, "nor of "+text.Count(in.AheadMore, "host")+" more with such rows")
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
	line := fmt.Sprintf("gone: %s on %s without rows of the last %s, which ended or whose rows are not here yet: %s",
		text.Count(in.ContainersGone, "container"), text.Count(in.HostsGone, "host"), text.Duration(in.GoneAfter), list)
	if m := in.Most; m != nil {
		line += fmt.Sprintf(". The rows of %s end by %s: if the clocks of others are ahead, report with --until %s",
			text.Count(m.Hosts, "host"), m.Until.UTC().Format("2006-01-02 15:04"), m.Until.UTC().Add(time.Second-1).Format(time.RFC3339))
	}
	return line
}

// rounded is a length to the minute, below two minutes to the second.
func rounded(d time.Duration) time.Duration {
	if d < 2*time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Minute)
}
