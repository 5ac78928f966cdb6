// Package forecast writes what `unthrottle forecast` predicts, for one container or all.
package forecast

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/rows"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Options of Write.
type Options struct {
	Pools bool // a table of each pool's delay and response
}

// Bounds on what is shown for people; JSON has all of it.
const (
	maxName  = 40
	maxPools = 12
)

// Write writes what each remedy would do, for people: the self-check, a table with a column for each load of the host,
// and the answer.
func Write(w io.Writer, f *forecast.Forecast, c *policy.Choice, o Options, style page.Style) error {
	p := page.New(style, 0, 0)
	p.Paragraph(fmt.Sprintf("%s: %.3g s recorded on %s, Linux %s; limit %s.", text.Sanitize(f.Target, 0), f.Window.Seconds(),
		text.Count(f.CPUs, "CPU"), text.Sanitize(f.Kernel, maxName), text.CPUs(f.Limit)))
	selfChecked(p, f)
	writeTable(p, f, c)
	if o.Pools {
		writePools(p, f)
	}
	p.Line("")
	for i, line := range answer(f, c) {
		if i == 0 {
			line = p.Bolden(line)
		}
		p.Paragraph(line)
	}
	writePriced(p, f)
	for _, note := range f.Notes {
		p.Paragraph("Note: " + note + ".")
	}
	return p.Send(w)
}

// writePriced writes the least CPUs of each remedy, where they were asked for.
func writePriced(p *page.Page, f *forecast.Forecast) {
	if f.Priced == nil {
		return
	}
	kept := "is no worse, nor the median, nor the CPU time done"
	if f.Objective != nil {
		kept = "keeps the objective, and as much is done"
	}
	p.Section(fmt.Sprintf("Least CPUs with which %s %s:", rows.FigureOf(f.Judged), kept))
	var found []forecast.Priced
	var none rows.Reasons
	for _, of := range f.Priced {
		if of.CPUs != nil {
			found = append(found, of)
			continue
		}
		name := of.Remedy.Name
		if of.Remedy.Period > 0 { // one of several
			name = of.Remedy.Text(f.Limit)
		}
		none.Add(name, "none: "+text.Sanitize(of.Why, 0))
	}
	show := func(name string, text func(forecast.Priced) string) table.Field[forecast.Priced] {
		return table.Field[forecast.Priced]{Column: table.Column{Name: name, Right: true}, Text: text}
	}
	table.Of([]table.Field[forecast.Priced]{
		{Column: table.Column{Name: "  remedy"}, Text: func(of forecast.Priced) string { return "  " + of.Remedy.Text(f.Limit) }},
		show("CPUs", func(of forecast.Priced) string { return fmt.Sprintf("%.3g", *of.CPUs) }),
		show("90 % of cases", func(of forecast.Priced) string {
			if of.High == nil {
				return fmt.Sprintf("%.3g or more", *of.Low)
			}
			return fmt.Sprintf("%.3g to %.3g", *of.Low, *of.High)
		}),
		show(rows.Figure(f.Judged)+" ms", func(of forecast.Priced) string { return rows.Milliseconds(of.Judged) }),
	}, found).Fitted(p)
	none.Write(p)
}

func selfChecked(p *page.Page, f *forecast.Forecast) {
	pair := func(of forecast.Figure, decimals int, unit string) string {
		text := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return strconv.FormatFloat(*v, 'f', decimals, 64)
		}
		return fmt.Sprintf("%s%s (%s)", text(of.Replayed), unit, text(of.Recorded))
	}
	c := f.Check
	latency := fmt.Sprintf("p50 %s, p99 %s", pair(c.P50, 2, " ms"), pair(c.P99, 2, " ms"))
	if j := f.Judged; j != nil && j.Of == forecast.OfRequests {
		latency = fmt.Sprintf("%s %s", rows.FigureOf(j), pair(c.Judged, 2, " ms"))
	}
	p.Paragraph(fmt.Sprintf("Self-check, replayed as it was (recorded): throttled periods %s, stopped %s, %s, CPU time %s.",
		pair(c.ThrottledPeriods, 0, ""), pair(c.Stopped, 3, " s"), latency, pair(c.CPU, 2, " s")))
	p.Line("")
}

type column = table.Field[*forecast.Row]

// columns are those that have anything to show. The less telling ones may be left out on a narrow terminal.
func columns(f *forecast.Forecast, c *policy.Choice) (fields []column) {
	show := func(head table.Column, text func(*forecast.Row) string) {
		head.Right = true
		fields = append(fields, column{Column: head, Text: text})
	}
	milliseconds := func(head table.Column, pick func(*forecast.Row) *float64) {
		show(head, func(r *forecast.Row) string { return rows.Milliseconds(pick(r)) })
	}
	has := func(is func(*forecast.Row) bool) bool {
		return slices.ContainsFunc(f.Rows, func(r forecast.Row) bool { return r.HostLoad == 0 && is(&r) })
	}
	remedy := func(r *forecast.Row) table.Cell { return rows.Cell(f, c, r) }
	fields = []column{{
		Column: table.Column{Name: "  remedy"},
		Text:   func(r *forecast.Row) string { return remedy(r).Text }, Color: func(r *forecast.Row) string { return remedy(r).Color },
	}}
	show(table.Column{Name: "throttled", Spare: 6}, func(r *forecast.Row) string { return fmt.Sprintf("%.0f", r.Figures.ThrottledPeriods) })
	show(table.Column{Name: "stopped"}, func(r *forecast.Row) string { return text.Duration(r.Figures.Stopped) })
	fields[len(fields)-1].Color = func(r *forecast.Row) string { return rows.Severity(r.Figures.Stopped.Seconds() / f.Window.Seconds()) }
	milliseconds(table.Column{Name: "p50 ms", Spare: 4}, func(r *forecast.Row) *float64 { return rows.MedianOf(f, r) })
	if j := f.Judged; j != nil && j.Of == forecast.OfRequests {
		show(table.Column{Name: rows.Figure(j) + " ms"}, rows.Latency)
		show(table.Column{Name: rows.Cases(f)}, func(r *forecast.Row) string { return rangeOf(r.JudgedError()) })
	} else {
		milliseconds(table.Column{Name: "p99 ms"}, func(r *forecast.Row) *float64 { return r.Figures.Response.P99 })
		show(table.Column{Name: "90 % of cases"}, func(r *forecast.Row) string { return rangeText(r.Error) })
		milliseconds(table.Column{Name: "max ms", Spare: 5}, func(r *forecast.Row) *float64 { return r.Figures.Response.Max })
	}
	for _, load := range busyLoads(f) {
		busy := map[string]*forecast.Row{}
		for i := range f.Rows {
			if row := &f.Rows[i]; row.HostLoad == load && row.Refused == "" {
				busy[rows.Name(f, row)] = row
			}
		}
		show(table.Column{Name: busyName(load), Spare: 3}, func(r *forecast.Row) string {
			if then := busy[rows.Name(f, r)]; then != nil {
				return rows.Milliseconds(then.Figures.Response.P99)
			}
			return figure.Missing
		})
	}
	milliseconds(table.Column{Name: "CPUs"}, func(r *forecast.Row) *float64 { return r.Reserved })
	if has(func(r *forecast.Row) bool { return r.Neighbours != nil }) {
		show(table.Column{Name: "others lose", Spare: 7}, func(r *forecast.Row) string { return rows.Lost(f, r) })
	}
	if has(func(r *forecast.Row) bool { return r.BreaksAt != nil || r.CollapsesAt != nil }) {
		show(table.Column{Name: "breaks at", Spare: 1}, func(r *forecast.Row) string { return loadText(r.BreaksAt) })
		show(table.Column{Name: "collapses at", Spare: 2}, func(r *forecast.Row) string { return loadText(r.CollapsesAt) })
	}
	return fields
}

// busyName heads the column of a host with that load.
func busyName(load float64) string { return fmt.Sprintf("p99 at %.0f %%", 100*load) }

// busyLoads are the loads of the host beside the one recorded, as they come.
func busyLoads(f *forecast.Forecast) []float64 {
	var loads []float64
	for _, row := range f.Rows {
		if row.HostLoad > 0 && !slices.Contains(loads, row.HostLoad) {
			loads = append(loads, row.HostLoad)
		}
	}
	return loads
}

func writeTable(p *page.Page, f *forecast.Forecast, c *policy.Choice) {
	var prices rows.Reasons
	var possible []*forecast.Row
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != 0 {
			continue
		}
		if row.Refused != "" {
			prices.Add(rows.Name(f, row), "not possible: "+text.Sanitize(row.Refused, 0))
			continue
		}
		possible = append(possible, row)
		if row.Price != "" {
			prices.Add(rows.Name(f, row), text.Sanitize(row.Price, 0))
		}
	}
	t := table.Of(columns(f, c), possible)
	t.Fitted(p)
	if slices.ContainsFunc(busyLoads(f), func(load float64) bool { return t.Has(busyName(load)) }) {
		p.Paragraph("A column \"p99 at\" is p99 in ms with the host that busy.")
	}
	prices.Write(p)
	if lines := rows.NotHere(f, c); len(lines) > 0 {
		p.Line("")
		for _, line := range lines {
			p.Hanging("  ", line)
		}
	}
}

func rangeText(e *forecast.Error) string {
	if e == nil {
		return rangeOf(nil)
	}
	return rangeOf(e.P99)
}

func rangeOf(r *forecast.Range) string {
	if r == nil {
		return "not known"
	}
	return rows.Milliseconds(&r.Low) + " to " + rows.Milliseconds(&r.High)
}

func loadText(at *float64) string {
	if at == nil {
		return "-"
	}
	return fmt.Sprintf("x%.2f", *at)
}

func writePools(p *page.Page, f *forecast.Forecast) {
	p.Section("Of each pool, in ms:")
	var pools []remedyPool
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad > 0 || row.Refused != "" {
			continue
		}
		name := "  " + row.Remedy.Text(f.Limit)
		for k, pool := range row.Figures.Pools {
			if k == maxPools {
				break
			}
			if pool.Response.Count > 0 || pool.Delay.Count > 0 {
				pools = append(pools, remedyPool{name, pool})
				name = ""
			}
		}
	}
	fields := []table.Field[remedyPool]{
		{Column: table.Column{Name: "  remedy"}, Text: func(p remedyPool) string { return p.remedy }},
		{Column: table.Column{Name: "pool", Least: 12}, Text: func(p remedyPool) string { return text.Sanitize(p.Name, maxName) }},
		{Column: table.Column{Name: "runs", Right: true, Spare: 1},
			Text: func(p remedyPool) string { return strconv.FormatUint(p.Response.Count, 10) }},
	}
	milliseconds := func(head table.Column, pick func(remedyPool) *float64) {
		head.Right = true
		fields = append(fields, table.Field[remedyPool]{
			Column: head, Text: func(p remedyPool) string { return rows.Milliseconds(pick(p)) }})
	}
	milliseconds(table.Column{Name: "delay p50", Spare: 4}, func(p remedyPool) *float64 { return p.Delay.P50 })
	milliseconds(table.Column{Name: "delay p99"}, func(p remedyPool) *float64 { return p.Delay.P99 })
	milliseconds(table.Column{Name: "delay max", Spare: 3}, func(p remedyPool) *float64 { return p.Delay.Max })
	milliseconds(table.Column{Name: "response p50"}, func(p remedyPool) *float64 { return p.Response.P50 })
	milliseconds(table.Column{Name: "response p99"}, func(p remedyPool) *float64 { return p.Response.P99 })
	milliseconds(table.Column{Name: "response max", Spare: 2}, func(p remedyPool) *float64 { return p.Response.Max })
	table.Of(fields, pools).Fitted(p)
}

// remedyPool is a pool under a remedy, which is named in its first line.
type remedyPool struct {
	remedy string
	forecast.PoolFigures
}

// answer says in sentences what is recommended.
func answer(f *forecast.Forecast, c *policy.Choice) []string {
	lines := rows.Sentences(c)
	if f.SmallestLimit != nil {
		line := fmt.Sprintf("Smallest limit that keeps it in 90 %% of cases: %s (now %.3g)", text.CPUs(*f.SmallestLimit), f.Limit)
		if r := f.SmallestRange; r != nil && r.Low < r.High {
			line += fmt.Sprintf("; from %.3g on it may be enough", r.Low)
		}
		lines = append(lines, line+".")
	}
	if f.SmallestNarrow != nil {
		lines = append(lines, fmt.Sprintf("So does a width of at most %s, without a quota.", text.Count(int(*f.SmallestNarrow), "CPU")))
	}
	if slices.ContainsFunc(f.Rows, func(r forecast.Row) bool { return r.Remedy.Modelled() && r.Refused == "" }) {
		lines = append(lines, "* modelled, not replayed: other threads take the work that was recorded.")
	}
	if note := rows.Unsure(f); note != "" {
		lines = append(lines, note+".")
	}
	return lines
}

// WriteAll writes a line for each container, and what the host gets back.
func WriteAll(w io.Writer, f *All, style page.Style) error {
	var b strings.Builder
	type line struct {
		*forecast.Forecast
		choice *policy.Choice
	}
	lines := make([]line, len(f.All))
	for i, made := range f.All {
		lines[i] = line{made, &f.Choices[i]}
	}
	show := func(name string, text func(line) string) table.Field[line] {
		return table.Field[line]{Column: table.Column{Name: name}, Text: text}
	}
	// A writer of memory cannot fail.
	_ = table.Texts(&b, style, []table.Field[line]{
		show("container", func(l line) string { return text.Sanitize(l.Target, maxName) }),
		show("limit", func(l line) string { return fmt.Sprintf("%.3g", l.Limit) }),
		show("throttled", func(l line) string { return fmt.Sprintf("%.0f", l.Rows[0].Figures.ThrottledPeriods) }),
		show("stopped s", func(l line) string { return fmt.Sprintf("%.3f", l.Rows[0].Figures.Stopped.Seconds()) }),
		show("p99 ms", func(l line) string { return rows.Milliseconds(l.Rows[0].Figures.Response.P99) }),
		show("recommended", func(l line) string { return rows.Recommendation(l.Forecast, l.choice) }),
		show("p99 ms", func(l line) string {
			if l.choice.Row < 0 {
				return figure.Missing
			}
			return rows.Milliseconds(l.Rows[l.choice.Row].Figures.Response.P99)
		}),
		show("smallest limit", func(l line) string {
			if l.SmallestLimit == nil {
				return figure.Missing
			}
			return fmt.Sprintf("%.3g", *l.SmallestLimit)
		}),
		show("back", func(l line) string {
			if l.SmallestLimit == nil {
				return figure.Missing
			}
			return fmt.Sprintf("%+.3g", l.Limit-*l.SmallestLimit)
		}),
	}, lines)
	if cpus, n := f.Back(); n > 0 {
		fmt.Fprintf(&b, "\nWith the smallest limits that keep what there is, this host gets %.3g CPUs of limit back "+
			"(%s).\n", cpus, text.Count(n, "container"))
	}
	for i, one := range f.All {
		if why := f.Choices[i].Unseen; why != "" {
			fmt.Fprintf(&b, "What this host can do for %s was not looked at: %s.\n", text.Sanitize(one.Target, maxName), text.Shown(why))
		}
	}
	for _, why := range f.NotForecast {
		fmt.Fprintf(&b, "Not forecast: %s.\n", text.Sanitize(why, 0))
	}
	return style.Send(w, b.String())
}
