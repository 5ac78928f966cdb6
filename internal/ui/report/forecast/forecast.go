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
	for _, note := range f.Notes {
		p.Paragraph("Note: " + note + ".")
	}
	return p.Send(w)
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

// column is a column of the table with what it shows of a row; on a busy host only that of its own column.
type column struct {
	table.Column
	cell func(i int, row *forecast.Row) table.Cell
}

// columns are those that have anything to show. The less telling ones may be left out on a narrow terminal.
func columns(f *forecast.Forecast, c *policy.Choice) []column {
	plain := func(of func(*forecast.Row) string) func(int, *forecast.Row) table.Cell {
		return func(_ int, row *forecast.Row) table.Cell { return table.Cell{Text: of(row)} }
	}
	has := func(of func(*forecast.Row) bool) bool {
		return slices.ContainsFunc(f.Rows, func(r forecast.Row) bool { return r.HostLoad == 0 && of(&r) })
	}
	all := []column{
		{table.Column{Name: "  remedy"}, func(i int, _ *forecast.Row) table.Cell { return rows.Cell(f, c, i) }},
		{table.Column{Name: "throttled", Right: true, Spare: 6}, plain(func(r *forecast.Row) string { return fmt.Sprintf("%.0f", r.Figures.ThrottledPeriods) })},
		{table.Column{Name: "stopped", Right: true}, func(_ int, r *forecast.Row) table.Cell {
			return table.Cell{Text: text.Duration(r.Figures.Stopped), Color: rows.Severity(r.Figures.Stopped.Seconds() / f.Window.Seconds())}
		}},
		{table.Column{Name: "p50 ms", Right: true, Spare: 4}, plain(func(r *forecast.Row) string { return rows.Milliseconds(rows.MedianOf(f, r)) })},
	}
	if j := f.Judged; j != nil && j.Of == forecast.OfRequests {
		all = append(all,
			column{table.Column{Name: rows.Figure(j) + " ms", Right: true}, plain(rows.Latency)},
			column{table.Column{Name: rows.Cases(f), Right: true}, plain(func(r *forecast.Row) string { return rangeOf(r.JudgedError()) })})
	} else {
		all = append(all,
			column{table.Column{Name: "p99 ms", Right: true}, plain(func(r *forecast.Row) string { return rows.Milliseconds(r.Figures.Response.P99) })},
			column{table.Column{Name: "90 % of cases", Right: true}, plain(func(r *forecast.Row) string { return rangeText(r.Error) })},
			column{table.Column{Name: "max ms", Right: true, Spare: 5}, plain(func(r *forecast.Row) string { return rows.Milliseconds(r.Figures.Response.Max) })})
	}
	for _, load := range busyLoads(f) {
		busy := map[string]*forecast.Row{}
		for i := range f.Rows {
			if row := &f.Rows[i]; row.HostLoad == load && row.Refused == "" {
				busy[rows.Name(f, row)] = row
			}
		}
		all = append(all, column{table.Column{Name: busyName(load), Right: true, Spare: 3}, plain(func(r *forecast.Row) string {
			if then := busy[rows.Name(f, r)]; then != nil {
				return rows.Milliseconds(then.Figures.Response.P99)
			}
			return "-"
		})})
	}
	all = append(all, column{table.Column{Name: "CPUs", Right: true}, plain(func(r *forecast.Row) string { return rows.Milliseconds(r.Reserved) })})
	if has(func(r *forecast.Row) bool { return r.Neighbours != nil }) {
		all = append(all, column{table.Column{Name: "others lose", Right: true, Spare: 7}, plain(func(r *forecast.Row) string { return rows.Lost(f, r) })})
	}
	if has(func(r *forecast.Row) bool { return r.BreaksAt != nil || r.CollapsesAt != nil }) {
		all = append(all,
			column{table.Column{Name: "breaks at", Right: true, Spare: 1}, plain(func(r *forecast.Row) string { return loadText(r.BreaksAt) })},
			column{table.Column{Name: "collapses at", Right: true, Spare: 2}, plain(func(r *forecast.Row) string { return loadText(r.CollapsesAt) })})
	}
	return all
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
	columns := columns(f, c)
	heads := make([]table.Column, len(columns))
	for i, c := range columns {
		heads[i] = c.Column
	}
	t := table.New(heads)
	var prices rows.Reasons
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != 0 {
			continue
		}
		if row.Refused != "" {
			prices.Add(rows.Name(f, row), "not possible: "+text.Sanitize(row.Refused, 0))
			continue
		}
		cells := make([]table.Cell, len(columns))
		for k, c := range columns {
			cells[k] = c.cell(i, row)
		}
		t.Add(cells)
		if row.Price != "" {
			prices.Add(rows.Name(f, row), text.Sanitize(row.Price, 0))
		}
	}
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
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
	t := table.New([]table.Column{{Name: "  remedy"}, {Name: "pool", Least: 12}, {Name: "runs", Right: true, Spare: 1},
		{Name: "delay p50", Right: true, Spare: 4}, {Name: "delay p99", Right: true}, {Name: "delay max", Right: true, Spare: 3},
		{Name: "response p50", Right: true}, {Name: "response p99", Right: true}, {Name: "response max", Right: true, Spare: 2}})
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad > 0 || row.Refused != "" {
			continue
		}
		name := "  " + row.Remedy.Text(f.Limit)
		for k, of := range row.Figures.Pools {
			if k == maxPools {
				break
			}
			if of.Response.Count == 0 && of.Delay.Count == 0 {
				continue
			}
			cells := []table.Cell{{Text: name}, {Text: text.Sanitize(of.Name, maxName)}, {Text: strconv.FormatUint(of.Response.Count, 10)}}
			for _, v := range []*float64{of.Delay.P50, of.Delay.P99, of.Delay.Max, of.Response.P50, of.Response.P99, of.Response.Max} {
				cells = append(cells, table.Cell{Text: rows.Milliseconds(v)})
			}
			t.Add(cells)
			name = ""
		}
	}
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
}

// answer says in sentences what is recommended.
func answer(f *forecast.Forecast, c *policy.Choice) []string {
	lines := rows.Sentences(c)
	if f.SmallestLimit != nil {
		line := fmt.Sprintf("Smallest limit that does, in 90 %% of cases: %s (now %.3g)", text.CPUs(*f.SmallestLimit), f.Limit)
		if r := f.SmallestRange; r != nil && r.Low < r.High {
			line += fmt.Sprintf("; from %.3g on it may", r.Low)
		}
		lines = append(lines, line+".")
	}
	if f.SmallestNarrow != nil {
		lines = append(lines, fmt.Sprintf("So does no quota, but never wider than %s.", text.Count(int(*f.SmallestNarrow), "CPU")))
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
	t := table.Left(&b, style)
	fmt.Fprintln(t, "container\tlimit\tthrottled\tstopped s\tp99 ms\trecommended\tp99 ms\tsmallest limit\tback")
	for i, one := range f.All {
		recommended, then := rows.Recommendation(one, &f.Choices[i]), "-"
		if row := f.Choices[i].Row; row >= 0 {
			then = rows.Milliseconds(one.Rows[row].Figures.Response.P99)
		}
		smallest, back := "-", "-"
		if one.SmallestLimit != nil {
			smallest, back = fmt.Sprintf("%.3g", *one.SmallestLimit), fmt.Sprintf("%+.3g", one.Limit-*one.SmallestLimit)
		}
		none := &one.Rows[0].Figures
		fmt.Fprintf(t, "%s\t%.3g\t%.0f\t%.3f\t%s\t%s\t%s\t%s\t%s\n", text.Sanitize(one.Target, maxName), one.Limit,
			none.ThrottledPeriods, none.Stopped.Seconds(), rows.Milliseconds(none.Response.P99), recommended, then, smallest, back)
	}
	t.Flush()
	if cpus, n := f.Back(); n > 0 {
		fmt.Fprintf(&b, "\nWith the smallest limits that keep what there is, this host gets %.3g CPUs of limit back (%s).\n", cpus, text.Count(n, "container"))
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
