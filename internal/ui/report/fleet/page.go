package fleet

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.js
	pageScript string
)

var pageTemplate = webpage.Template("fleet", pageHTML)

// HTML writes the document as one page that loads nothing. Its script finds services and sorts them, and shows nothing that
// is not there without it.
func HTML(w io.Writer, d Document, from webpage.Origin) error {
	p := htmlPage{
		Head: webpage.Head{Title: "unthrottle fleet report", Name: "How many cores come back", From: from,
			Facts: []webpage.Fact{{Name: "of", Value: head(d)}}, Script: template.JS(pageScript)}, // our own file
		Level: "near", Basis: basis(d), Verdict: ledger(d)[0], Lines: append(ledger(d)[1:], coverage(d)...), Assumes: assumes(d),
		Ledger: ledgerBars(d.Ledger), Services: newServiceList(d), Picture: pictureOf(d.Services), LeftOut: LeftOut(d.Input),
		SpreadAssumes: spreadAssumes, AppliedAssumes: appliedAssumes,
	}
	p.Rollouts, p.NeverStopped = newRollouts(d.Rollouts)
	if line := gone(d.Input); line != "" {
		p.Lines = append(p.Lines, line)
	}
	if d.Ledger.SavedLow > 0 {
		p.Level = "fine"
	}
	if d.Priced > 0 {
		p.ByRemedy, p.Asks = newPageTable(byRemedyTitle, remedyColumns(d), d.ByRemedy, 0), asks(d.ByRemedy)
	}
	if rows, left := ranked(d.Services, savedAtP99); len(rows) > 0 {
		p.Prices = newPageTable(pricesTitle, priceColumns, rows, left)
	}
	if rows, left := ranked(d.Services, slack); len(rows) > 0 {
		p.Objectives = newPageTable(objectiveTitle, objectiveColumns, rows, left)
	}
	for _, t := range unlikeTables(d.Services) {
		p.Spread = append(p.Spread, newPageTable(t.title, t.columns, t.rows, t.left))
	}
	if rows, left := tooWide(d.Defaults); len(rows) > 0 {
		p.Defaults, p.DefaultsAssume = newPageTable(defaultsTitle, defaultColumns, rows, left), defaultsAssume(d)
	}
	if len(d.Applied) > 0 {
		p.Applied = newPageTable(appliedTitle, appliedColumns, d.Applied, 0)
		if days := appliedDays(d.Applied); len(days) > 0 {
			p.AppliedDays = newPageTable(appliedDaysTitle, appliedDayColumns, days, 0)
		}
	}
	for _, u := range d.Unknown {
		p.Unknown = append(p.Unknown, unknown(u))
	}
	return pageTemplate.Execute(w, p)
}

// htmlPage is what the template shows.
type htmlPage struct {
	Head             webpage.Head
	Level            string // the verdict's class
	Basis, Verdict   string
	Lines            []string
	Assumes          string
	Ledger           []pageBar
	Services         *serviceList
	Picture          *picture
	ByRemedy, Prices *pageTable
	Objectives       *pageTable
	Asks             string
	Spread           []*pageTable
	SpreadAssumes    string
	Defaults         *pageTable
	DefaultsAssume   string
	Applied          *pageTable
	AppliedDays      *pageTable
	AppliedAssumes   string
	Rollouts         []rolloutChart
	NeverStopped     []string
	Unknown, LeftOut []string
}

// pageTable is a table, of which so many more rows are left out.
type pageTable struct {
	Title string
	Heads []pageHead
	Rows  [][]string
	More  int
}

// pageHead is a column's name, beside single cells too.
type pageHead struct {
	Name, Label string
	Figures     bool
}

func newPageTable[Row any](title string, columns []column[Row], rows []Row, left int) *pageTable {
	t := &pageTable{Title: title, Heads: heads(columns), More: left}
	for _, row := range rows {
		t.Rows = append(t.Rows, cells(columns, row))
	}
	return t
}

// pageBar is a bar with the range of what it stands for, in hundredths of the drawing.
type pageBar struct {
	Name, Value     string
	Part, Low, Wide float64
	Ranged, Chosen  bool
}

// ranged adds a range to a bar, of a drawing of so much.
func (b pageBar) ranged(low, high, all float64) pageBar {
	b.Low, b.Wide, b.Ranged = 100*low/all, 100*(high-low)/all, true
	return b
}

// ledgerBars are those of the ledger; none without cores.
func ledgerBars(l Ledger) []pageBar {
	all := l.CoresNow
	if !(all > 0) {
		return nil
	}
	return []pageBar{
		{Name: "now", Value: fmt.Sprintf("%.1f", all), Part: 100},
		pageBar{Name: "needed", Value: fmt.Sprintf("%.1f", l.CoresAfter), Part: 100 * l.CoresAfter / all}.
			ranged(all-l.SavedHigh, all-l.SavedLow, all),
		{Name: "of it rounding", Value: fmt.Sprintf("%.1f", l.Rounding), Part: 100 * l.Rounding / all},
	}
}

// maxDots bounds the picture.
const maxDots = 2000

// picture is services by their cores and their runnable threads per core, both logarithmic.
type picture struct {
	Across, Up []tick
	Dots       []dot
	More       int
}

type tick struct {
	Name string
	At   float64
}

type dot struct {
	X, Y        float64
	Class, Name string
}

// pictureOf draws the services of which both are known; nil: there are none.
func pictureOf(services []Service) *picture {
	var drawn []Service
	for _, s := range services {
		if s.CoresNow != nil && *s.CoresNow > 0 && s.RunnablePerCore != nil && *s.RunnablePerCore > 0 {
			drawn = append(drawn, s)
		}
	}
	if len(drawn) == 0 {
		return nil
	}
	slices.SortStableFunc(drawn, func(a, b Service) int { return cmp.Compare(*b.CoresNow, *a.CoresNow) })
	p := &picture{More: max(0, len(drawn)-maxDots)}
	drawn = drawn[:min(len(drawn), maxDots)]
	across, up := newScale(50, 710), newScale(290, 10)
	for _, s := range drawn {
		across.take(*s.CoresNow)
		up.take(*s.RunnablePerCore)
	}
	p.Across, p.Up = across.ticks(), up.ticks()
	for _, s := range drawn {
		class := "dot"
		if s.StoppedShare != nil && *s.StoppedShare > 0.01 {
			class = "bar over"
		}
		p.Dots = append(p.Dots, dot{across.place(*s.CoresNow), up.place(*s.RunnablePerCore), class,
			fmt.Sprintf("%s: %s, %s runnable per core, stopped %s",
				shownName(s.Name), text.CPUs(*s.CoresNow), figure.Fixed(s.RunnablePerCore, 2), percent(s.StoppedShare))})
	}
	return p
}

// scale maps values to a stretch of the drawing by their logarithm, between whole powers of ten.
type scale struct{ from, to, low, high float64 }

func newScale(from, to float64) *scale { return &scale{from, to, math.Inf(1), math.Inf(-1)} }

func (s *scale) take(v float64) {
	l := math.Log10(v)
	s.low, s.high = min(s.low, math.Floor(l)), max(s.high, math.Ceil(l), math.Floor(l)+1)
}

func (s *scale) place(v float64) float64 {
	return s.from + (s.to-s.from)*(math.Log10(v)-s.low)/(s.high-s.low)
}

func (s *scale) ticks() (ticks []tick) {
	for l := s.low; l <= s.high; l++ {
		v := math.Pow(10, l)
		ticks = append(ticks, tick{figure.Trimmed(v), s.place(v)})
	}
	return ticks
}
