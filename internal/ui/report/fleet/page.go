package fleet

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/figure"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

//go:embed page.html
var pageHTML string

var pageTemplate = webpage.Template("fleet", pageHTML)

// HTML writes the document as one page that loads nothing and runs no script.
func HTML(w io.Writer, d Document, from webpage.Origin) error {
	p := htmlPage{
		Head: webpage.Head{Title: "unthrottle fleet report", Name: "How many cores come back", From: from,
			Facts: []webpage.Fact{{Name: "of", Value: head(d)}}},
		Level: "near", Basis: basis(d), Verdict: ledger(d)[0], Lines: append(ledger(d)[1:], coverage(d)...), Assumes: assumes(d),
		Ledger: bars(d.Ledger), Picture: pictureOf(d.Services), LeftOut: LeftOut(d.Input),
	}
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
	for _, r := range rankings(d.Services) {
		t := newPageTable(r.title, servicesColumns(d), r.rows, r.left)
		for i, s := range r.rows {
			t.Rows[i].Percent = 100 * *r.by(s) / *r.by(r.rows[0])
		}
		p.Rankings = append(p.Rankings, t)
	}
	if rows, left := ranked(d.Services, unlike); len(rows) > 0 {
		p.Spread, p.SpreadAssumes = newPageTable(spreadTitle, spreadColumns, rows, left), spreadAssumes
	}
	if rows, left := ranked(d.Services, savedByHalf); len(rows) > 0 {
		p.Shards, p.ShardsAssume = newPageTable(shardsTitle, shardColumns, rows, left), shardsAssume
	}
	if rows, left := tooWide(d.Defaults); len(rows) > 0 {
		p.Defaults, p.DefaultsAssume = newPageTable(defaultsTitle, defaultColumns, rows, left), defaultsAssume(d)
	}
	if len(d.Applied) > 0 {
		p.Applied = newPageTable(appliedTitle, appliedColumns, d.Applied, 0)
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
	Picture          *picture
	ByRemedy, Prices *pageTable
	Objectives       *pageTable
	Asks             string
	Rankings         []*pageTable
	Spread, Shards   *pageTable
	SpreadAssumes    string
	ShardsAssume     string
	Defaults         *pageTable
	DefaultsAssume   string
	Applied          *pageTable
	Unknown, LeftOut []string
}

// pageTable is a table, of which so many more rows are left out.
type pageTable struct {
	Title           string
	Columns, Labels []string
	Rows            []pageRow
	More            int
}

// pageRow is a row with the length of its bar; 0: it has none.
type pageRow struct {
	Cells   []string
	Percent float64
}

func newPageTable[Row any](title string, columns []column[Row], rows []Row, left int) *pageTable {
	t := &pageTable{Title: title, More: left}
	t.Columns, t.Labels = heads(columns)
	for _, row := range rows {
		t.Rows = append(t.Rows, pageRow{Cells: cells(columns, row)})
	}
	return t
}

// pageBar is a bar of the ledger with the range of what it stands for, in units of the drawing.
type pageBar struct {
	Name, Value      string
	Y, Middle, Text  int
	Width, Low, High float64
	Ranged           bool
}

// bars are those of the ledger; none without cores.
func bars(l Ledger) []pageBar {
	const left, room, height = 110.0, 500.0, 36
	if !(l.CoresNow > 0) {
		return nil
	}
	drawn := []pageBar{
		{Name: "now", Value: fmt.Sprintf("%.1f", l.CoresNow), Width: room},
		{Name: "needed", Value: fmt.Sprintf("%.1f", l.CoresAfter), Width: room * l.CoresAfter / l.CoresNow, Ranged: true,
			Low: left + room*(l.CoresNow-l.SavedHigh)/l.CoresNow, High: left + room*(l.CoresNow-l.SavedLow)/l.CoresNow},
		{Name: "of it rounding", Value: fmt.Sprintf("%.1f", l.Rounding), Width: room * l.Rounding / l.CoresNow},
	}
	for i := range drawn {
		drawn[i].Y, drawn[i].Middle, drawn[i].Text = 8+i*height, 19+i*height, 24+i*height
	}
	return drawn
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
