// Package rows shows a forecast's rows and what is recommended of them: the part that explain, forecast and fix share.
package rows

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/table"
)

// Recommendation is a choice in a few words.
func Recommendation(f *forecast.Forecast, c *policy.Choice) string {
	switch c.Answer {
	case policy.AnswerRemedy:
		return f.Rows[c.Row].Remedy.Text(f.Limit)
	case policy.AnswerMoreCPU:
		if c.Row >= 0 {
			return "more CPU: " + f.Rows[c.Row].Remedy.Text(f.Limit)
		}
		return "more CPU"
	case policy.AnswerSetting:
		return "a setting: " + f.Rows[c.Row].Remedy.Text(f.Limit)
	case policy.AnswerUnknown:
		return "nothing"
	}
	return "leave it"
}

// Sentences are a choice with its reason, and the advice beside it.
func Sentences(c *policy.Choice) []string {
	head := map[policy.Answer]string{
		policy.AnswerRemedy: "Recommended: ", policy.AnswerLeave: "Leave it: ", policy.AnswerMoreCPU: "More CPU than the limit: ",
		policy.AnswerSetting: "A setting of the service: ", policy.AnswerUnknown: "Nothing is recommended: ",
	}[c.Answer]
	lines := []string{head + text.Shown(c.Why) + "."}
	if c.Advice != "" {
		lines = append(lines, "Beside it: "+text.Shown(c.Advice)+".")
	}
	for _, language := range c.Write {
		lines = append(lines, language.Text()...)
	}
	if c.Unseen != "" {
		lines = append(lines, "What this host can do was not looked at: "+text.Shown(c.Unseen)+".")
	}
	for _, note := range c.Notes {
		lines = append(lines, text.Shown(note)+".")
	}
	return lines
}

// NotHere says which rows this host cannot do and why, each reason once.
func NotHere(f *forecast.Forecast, c *policy.Choice) []string {
	var reasons Reasons
	for _, i := range slices.Sorted(maps.Keys(c.Refused)) {
		if row := &f.Rows[i]; row.HostLoad == 0 && row.Refused == "" {
			reasons.Add(Name(f, row), notHere(c.Refused[i]))
		}
	}
	return reasons.lines()
}

func notHere(why string) string { return "not possible here: " + text.Shown(why) }

// Line is a row of the table that a fix chooses from, as texts.
type Line struct {
	Name    string // a star marks a modelled one
	Refused string // why the remedy cannot be in force; "": it can, and the figures below are set
	// Chosen marks what is recommended; Why says why a row is not; "": nothing is to be said.
	Chosen                                   bool
	Why                                      string
	Judged, Spread, P50, Stopped, CPUs, Lost string
	Milliseconds                             *float64 // what Judged shows; nil: not known
	Share                                    float64  // stopped time, of the time
}

// Lines are the rows of a forecast that a fix chooses from: what each brings and costs, and why it is not recommended.
func Lines(f *forecast.Forecast, c *policy.Choice) []Line {
	why := map[int]string{}
	for _, n := range c.Not {
		why[n.Row] = n.Why
	}
	var lines []Line
	for i := range f.Rows {
		row := &f.Rows[i]
		if row.HostLoad != 0 || row.Remedy.Modelled() && (row.Refused != "" || row.Remedy.Name != forecast.Pools) {
			continue
		}
		if row.Refused != "" {
			lines = append(lines, Line{Name: Name(f, row), Refused: text.Sanitize(row.Refused, 0)})
			continue
		}
		line := Line{
			Name: Name(f, row), Chosen: chosen(f, c, row), Judged: Latency(row), Milliseconds: row.Judged,
			Spread: "not known", P50: Milliseconds(MedianOf(f, row)),
			Share: row.Figures.Stopped.Seconds() / f.Window.Seconds(), CPUs: Milliseconds(row.Reserved), Lost: Lost(f, row),
		}
		line.Stopped = text.PerSecond(line.Share, line.Share)
		if e := row.JudgedError(); e != nil {
			line.Spread = Milliseconds(&e.Low) + " to " + Milliseconds(&e.High)
		}
		switch {
		case c.Refused[i] != "" && why[i] == c.Refused[i]:
			line.Why = notHere(why[i])
		case why[i] != "":
			line.Why = text.Shown(why[i])
		}
		lines = append(lines, line)
	}
	return lines
}

// Table writes the lines, with the reasons below.
func Table(p *page.Page, f *forecast.Forecast, c *policy.Choice) {
	mark := func(l Line) string { return marked(l.Name, l.Chosen).Color }
	fields := []table.Field[Line]{
		{Column: table.Column{Name: "  remedy"}, Text: func(l Line) string { return marked(l.Name, l.Chosen).Text }, Color: mark},
		{Column: table.Column{Name: Figure(f.Judged) + " ms", Right: true}, Text: func(l Line) string { return l.Judged }, Color: mark},
		{Column: table.Column{Name: Cases(f), Right: true}, Text: func(l Line) string { return l.Spread }},
		{Column: table.Column{Name: "p50 ms", Right: true, Spare: 1}, Text: func(l Line) string { return l.P50 }},
		{Column: table.Column{Name: "stopped", Right: true}, Text: func(l Line) string { return l.Stopped },
			Color: func(l Line) string { return Severity(l.Share) }},
		{Column: table.Column{Name: "CPUs", Right: true}, Text: func(l Line) string { return l.CPUs }},
		{Column: table.Column{Name: "others lose", Right: true, Spare: 2}, Text: func(l Line) string { return l.Lost }},
	}
	var reasons Reasons
	var possible []Line
	for _, line := range Lines(f, c) {
		if line.Refused != "" {
			reasons.Add(line.Name, "not possible: "+line.Refused)
			continue
		}
		if line.Why != "" {
			reasons.Add(line.Name, line.Why)
		}
		possible = append(possible, line)
	}
	table.Of(fields, possible).Fitted(p)
	reasons.Write(p)
	if note := Unsure(f); note != "" {
		p.Hanging("  ", note)
	}
}

// unsure marks a figure that tells an order and no latency.
const unsure = "? "

// Latency shows the judged latency of a row, marked where forecasts like it seldom came close.
func Latency(row *forecast.Row) string {
	if row.Known != nil && row.Known.Rare() && row.Judged != nil {
		return unsure + Milliseconds(row.Judged)
	}
	return Milliseconds(row.Judged)
}

// Unsure says what the mark of a figure means; "": none has it.
func Unsure(f *forecast.Forecast) string {
	close, all := 0, 0
	for i := range f.Rows {
		if k := f.Rows[i].Known; k != nil && k.Rare() && k.All > all {
			close, all = k.Close, k.All
		}
	}
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("?: of %d such forecasts %d came within a quarter, on services that the program met for the "+
		"first time; they say which remedy to try first (fix tries them)", all, close)
}

// Cases names the column of the intervals.
func Cases(f *forecast.Forecast) string {
	if f.Judged != nil && f.Judged.Of == forecast.OfRequests {
		return fmt.Sprintf("%.0f %% of cases", 100*forecast.Shown)
	}
	return fmt.Sprintf("%.0f %% of cases", 100*forecast.Coverage)
}

// Name is a remedy as a row of a table names it; a star marks one that is modelled.
func Name(f *forecast.Forecast, row *forecast.Row) string {
	if row.Remedy.Modelled() {
		return row.Remedy.Text(f.Limit) + " *"
	}
	return row.Remedy.Text(f.Limit)
}

// Cell is the first cell of a row: "> " and green marks what is recommended.
func Cell(f *forecast.Forecast, c *policy.Choice, row *forecast.Row) table.Cell {
	return marked(Name(f, row), chosen(f, c, row))
}

// chosen reports whether a row of the forecast is what is recommended.
func chosen(f *forecast.Forecast, c *policy.Choice, row *forecast.Row) bool {
	return c.Row >= 0 && row == &f.Rows[c.Row] || c.Answer == policy.AnswerLeave && row.Remedy.Name == forecast.None && row.HostLoad == 0
}

func marked(name string, chosen bool) table.Cell {
	if chosen {
		return table.Cell{Text: "> " + name, Color: page.Green}
	}
	return table.Cell{Text: "  " + name}
}

// Shares of stopped time from which a figure is near a stop, and is one.
const (
	near  = 0.01
	alarm = 0.05
)

// Severity is the colour of a share of stopped time: green fine, yellow near, red stopped.
func Severity(share float64) string {
	switch {
	case share >= alarm:
		return page.Red
	case share >= near:
		return page.Amber
	}
	return page.Green
}

// Lost is the CPU time that other containers lose to a row, in CPUs.
func Lost(f *forecast.Forecast, row *forecast.Row) string {
	if row.Neighbours == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f CPUs", max(0, row.Neighbours.Lost.Seconds()/f.Window.Seconds()))
}

// Reasons are sentences about rows, each once with all the rows that it holds for.
type Reasons struct {
	order []string
	rows  map[string][]string
}

// Add says something of a row.
func (r *Reasons) Add(row, why string) {
	if r.rows == nil {
		r.rows = map[string][]string{}
	}
	if len(r.rows[why]) == 0 {
		r.order = append(r.order, why)
	}
	r.rows[why] = append(r.rows[why], row)
}

// Write writes a line for each reason.
func (r *Reasons) Write(p *page.Page) {
	if len(r.order) > 0 {
		p.Line("")
	}
	for _, line := range r.lines() {
		p.Hanging("  ", line)
	}
}

func (r *Reasons) lines() []string {
	var lines []string
	for _, why := range r.order {
		lines = append(lines, strings.Join(r.rows[why], "; ")+": "+why)
	}
	return lines
}

// Figure names what is judged, for a column.
func Figure(j *forecast.Judged) string {
	switch {
	case j == nil:
		return "p99"
	case j.Quantile >= 1:
		return "longest"
	}
	return "p" + strconv.FormatFloat(100*j.Quantile, 'f', -1, 64)
}

// FigureOf names what is judged, and of what.
func FigureOf(j *forecast.Judged) string {
	figure := Figure(j)
	switch {
	case j == nil:
	case j.Of == forecast.OfRequests:
		figure += " of requests"
		if kind := j.Kind.String(); kind != "" {
			figure += " " + kind
		}
	case j.Pool != "":
		figure += " of pool " + text.Sanitize(j.Pool, maxPool)
	}
	return figure
}

// maxPool bounds a pool's name in a heading.
const maxPool = 64

// MedianOf is the median beside the judged figure: of the judged requests, else of all responses.
func MedianOf(f *forecast.Forecast, row *forecast.Row) *float64 {
	if f.Judged != nil && f.Judged.Of == forecast.OfRequests {
		return row.JudgedP50
	}
	return row.Figures.Response.P50
}

// Milliseconds shows a figure with three digits or so; "-": not measured.
func Milliseconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return text.Milliseconds(*v)
}
