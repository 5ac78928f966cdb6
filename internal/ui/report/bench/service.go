// Package bench writes what `unthrottle bench` measured: the load of a service within an
// objective, sleeps beside burning threads, and the behaviour of the kernel.
package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Bounds of the width of the text, in columns.
const (
	minWidth = 40
	maxWidth = 110
)

// Service writes the result of a bench of a service: the highest load of each remedy,
// and the latencies at equal loads.
func Service(w io.Writer, r capacity.Result, style page.Style) error {
	p := page.New(style, minWidth, maxWidth)
	p.Paragraph(head(r))
	p.Line("")
	loads(r).write(p)
	p.Line("")
	responses(r).write(p)
	if r.URL == "" { // else its cgroup is not known
		p.Line("")
		costs(r).write(p)
	}
	if text := verdict(r); text != "" {
		p.Line("")
		p.Paragraph(text)
	}
	for _, line := range notes(r) {
		p.Paragraph(line)
	}
	return p.Send(w)
}

func head(r capacity.Result) string {
	objective := fmt.Sprintf("Objective: p%s within %s ms, at most %s %% errors.", figure.Trimmed(100*r.Quantile),
		figure.Trimmed(r.BoundMs), figure.Trimmed(100*r.Errors))
	repeats := fmt.Sprintf("%d repeats, steps of %s s.", r.Repeats, figure.Trimmed(r.Step))
	if r.URL != "" {
		return fmt.Sprintf("%s, as it is. %s %s", text.Shown(r.URL), objective, repeats)
	}
	weight := " It runs at the highest CPU weight, so other load hardly affects the results."
	if r.Fair {
		weight = ""
	}
	return fmt.Sprintf("Shape %s: %s. Linux %s, %s, limit %s. %s %s%s", r.Shape, r.About, text.Shown(r.Kernel),
		text.Count(r.CPUs, "CPU"), text.Count(r.Limit, "CPU"), objective, repeats, weight)
}

// grid is a table as text and as HTML: its heads, and its rows with a cell for each.
type grid struct {
	Heads []string
	Rows  [][]string
	write func(*page.Page) // as text, fitted to the page
}

// field is a column of a grid.
type field[T any] struct {
	head string
	text func(T) string
}

func gridOf[T any](fields []field[T], values []T) grid {
	var g grid
	columns := make([]table.Field[T], len(fields))
	for i, f := range fields {
		g.Heads = append(g.Heads, f.head)
		columns[i] = table.Field[T]{Column: table.Column{Name: f.head}, Text: f.text}
	}
	for _, v := range values {
		row := make([]string, len(fields))
		for i, f := range fields {
			row[i] = f.text(v)
		}
		g.Rows = append(g.Rows, row)
	}
	g.write = func(p *page.Page) { table.Figures(p, p.Style, columns, values) }
	return g
}

func loads(r capacity.Result) grid {
	return gridOf([]field[capacity.Remedy]{
		{"remedy", func(m capacity.Remedy) string { return m.Remedy }},
		{"CPUs", func(m capacity.Remedy) string { return figure.Fixed(m.CPUsGranted, 1) }},
		{"highest load /s", highestLoad},
		{"spread", func(m capacity.Remedy) string { return spread(m.Loads) }},
		{"to the quota", func(m capacity.Remedy) string { return figure.Fixed(m.Ratio, 2) }},
		{"95 % interval", interval},
		{"", func(m capacity.Remedy) string { return text.Either(m.Noisy, "noisy", "") }},
	}, r.Remedies)
}

func highestLoad(m capacity.Remedy) string {
	if m.MaxLoad == nil {
		return "none met"
	}
	return figure.Fixed(m.MaxLoad, 0)
}

func spread(loads []float64) string {
	if len(loads) == 0 {
		return "-"
	}
	least, most := loads[0], loads[0]
	for _, l := range loads {
		least, most = min(least, l), max(most, l)
	}
	return fmt.Sprintf("%.0f-%.0f", least, most)
}

func interval(m capacity.Remedy) string {
	if m.RatioLow == nil || m.RatioHigh == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f-%.2f", *m.RatioLow, *m.RatioHigh)
}

// point is a point of a remedy.
type point struct {
	remedy string
	capacity.Point
}

func points(r capacity.Result) (all []point) {
	eachPoint(r, func(remedy string, p capacity.Point) { all = append(all, point{remedy, p}) })
	return all
}

// responses and costs are two tables over the same points, each of which fits a terminal of 80 columns.
func responses(r capacity.Result) grid {
	return gridOf([]field[point]{
		{"at", func(p point) string { return ofBest(p.Point) }},
		{"load /s", func(p point) string { return fmt.Sprintf("%.0f", p.Load) }},
		{"remedy", func(p point) string { return p.remedy }},
		{"p50", func(p point) string { return figure.Fixed(p.P50, 1) }},
		{"p90", func(p point) string { return figure.Fixed(p.P90, 1) }},
		{"p99", func(p point) string { return figure.Fixed(p.P99, 1) }},
		{"p99.9", func(p point) string { return figure.Fixed(p.P999, 1) }},
		{"max ms", func(p point) string { return figure.Fixed(p.Max, 0) }},
		{"failed", func(p point) string { return strconv.FormatUint(p.Failed, 10) }},
	}, points(r))
}

func costs(r capacity.Result) grid {
	return gridOf([]field[point]{
		{"at", func(p point) string { return ofBest(p.Point) }},
		{"remedy", func(p point) string { return p.remedy }},
		{"CPUs used", func(p point) string { return figure.Fixed(p.CPUUsed, 2) }},
		{"throttled periods", func(p point) string { return figure.OfPeriods(p.ThrottledPeriods, p.Periods) }},
		{"stopped %", func(p point) string { return stopped(p.Point) }},
		{"switches /s", func(p point) string { return figure.Fixed(p.Switches, 0) }},
	}, points(r))
}

// ofBest is a point's share of the best load.
func ofBest(p capacity.Point) string { return fmt.Sprintf("%.0f %%", 100*p.OfBest) }

// eachPoint goes through the points load by load, the remedies side by side.
func eachPoint(r capacity.Result, do func(remedy string, p capacity.Point)) {
	rows := 0
	for _, m := range r.Remedies {
		rows = max(rows, len(m.Points))
	}
	for i := range rows {
		for _, m := range r.Remedies {
			if i < len(m.Points) {
				do(m.Remedy, m.Points[i])
			}
		}
	}
}

func stopped(p capacity.Point) string {
	if p.StoppedLow == nil || p.StoppedHigh == nil {
		return "-"
	}
	low, high := fmt.Sprintf("%.1f", 100**p.StoppedLow), fmt.Sprintf("%.1f", 100**p.StoppedHigh)
	if low == high {
		return low
	}
	return low + "-" + high
}

// moreLoad begins what a verdict says of remedies that help.
const moreLoad = "more load within the objective:"

// verdict says what held at equal CPUs.
func verdict(r capacity.Result) string {
	if len(r.Remedies) < 2 || r.Remedies[0].CPUsGranted == nil {
		return ""
	}
	var better, worse, same []string
	for _, m := range r.Remedies[1:] {
		if m.Ratio == nil || *m.CPUsGranted != *r.Remedies[0].CPUsGranted {
			continue
		}
		text := fmt.Sprintf("%s %.2fx", m.Remedy, *m.Ratio)
		switch {
		case *m.RatioLow > 1:
			better = append(better, text)
		case *m.RatioHigh < 1:
			worse = append(worse, text)
		default:
			same = append(same, text)
		}
	}
	var parts []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+strings.Join(names, ", "))
		}
	}
	add(moreLoad, better)
	add("less:", worse)
	add("no difference that these repeats could tell:", same)
	if len(parts) == 0 {
		return ""
	}
	return "At the same CPUs as the quota: " + strings.Join(parts, "; ") + "."
}

func notes(r capacity.Result) []string {
	notes := []string{"Ratios are of the repeats' pairs (geometric mean, Student's t). Quantiles have at least 10 samples beyond them."}
	if r.BackgroundToo {
		notes = append(notes, "The load counts all requests; objective and latencies are of those that are not background.")
	}
	for _, m := range r.Remedies {
		for _, why := range m.Why {
			notes = append(notes, fmt.Sprintf("Noisy: %s: %s.", m.Remedy, why))
		}
	}
	for _, note := range r.Notes {
		notes = append(notes, "Note: "+text.Shown(note)+".")
	}
	return notes
}
