package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
)

// lsTable is the cells and how wide each column is.
type lsTable struct {
	columns []lsColumn
	widths  []int
	rows    [][]string
	marks   []string // the colour of each row's stopped time
}

const (
	lsGap   = 2
	lsRed   = "\x1b[31m"
	lsAmber = "\x1b[33m"
	lsBold  = "\x1b[1m"
	lsPlain = "\x1b[0m"
)

func newLSTable(columns []lsColumn, observations []observe.Observation) *lsTable {
	t := &lsTable{columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = len(c.name)
	}
	for k := range observations {
		o := &observations[k]
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = c.cell(o)
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
		}
		t.rows = append(t.rows, row)
		t.marks = append(t.marks, lsMark(o))
	}
	return t
}

func lsMark(o *observe.Observation) string {
	switch stopped := lsStopped(o); {
	case stopped >= lsAlarm:
		return lsRed
	case stopped >= lsNoticed:
		return lsAmber
	}
	return ""
}

// fit narrows the columns that may be cut, always the widest of them, until the table fits or each is at its least.
func (t *lsTable) fit(width int) {
	if width <= 0 {
		return
	}
	total := lsGap * (len(t.columns) - 1)
	for _, w := range t.widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.least > 0 && t.widths[i] > max(c.least, len(c.name)) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

func (t *lsTable) write(b *strings.Builder, o LSOptions) {
	if !o.NoHeader {
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.name
		}
		t.line(b, names, func(int) string { return lsBold }, o.Color)
	}
	for i, row := range t.rows {
		t.line(b, row, func(column int) string {
			if t.columns[column].name == "STOPPED" {
				return t.marks[i]
			}
			return ""
		}, o.Color)
	}
}

func (t *lsTable) line(b *strings.Builder, cells []string, mark func(column int) string, color bool) {
	for i, text := range cells {
		text = lsCut(text, t.widths[i], t.columns[i].tail)
		pad := strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(text))
		if m := mark(i); color && m != "" {
			text = m + text + lsPlain
		}
		switch last := i == len(cells)-1; {
		case t.columns[i].right:
			text = pad + text
		case !last:
			text += pad
		}
		if i > 0 {
			b.WriteString(strings.Repeat(" ", lsGap))
		}
		b.WriteString(text)
	}
	b.WriteByte('\n')
}

// lsCut shortens a text to width runes, at its end or at its front.
func lsCut(text string, width int, tail bool) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	if tail {
		return "…" + string(runes[len(runes)-width+1:])
	}
	return string(runes[:width-1]) + "…"
}

// maxLSFootnotes bounds the footnotes; hosts where nothing can be read have one for each container.
const maxLSFootnotes = 8

// lsFootnotes says what was not measured and why, each reason once with the number of containers it holds for.
func lsFootnotes(b *strings.Builder, observations []observe.Observation) {
	counts := map[string]int{}
	var notes []string
	for _, o := range observations {
		for _, n := range o.NotMeasured {
			if counts[n]++; counts[n] == 1 {
				notes = append(notes, n)
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, n := range notes {
		if i == 0 {
			b.WriteString("\nNot measured:\n")
		}
		if i == maxLSFootnotes {
			fmt.Fprintf(b, "  and %d other reasons: see -o json\n", len(notes)-i)
			return
		}
		fmt.Fprintf(b, "  %s (%s)\n", lsText(n), lsCount(counts[n], len(observations)))
	}
}

func lsCount(n, of int) string {
	if n == of && of > 1 {
		return "all containers"
	}
	return text.Count(n, "container")
}
