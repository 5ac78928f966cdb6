// Package table lays out rows in columns: by hand for a view whose columns give
// way to a narrow terminal, with tabwriter for the rest.
//
// # Rule
//
// Figures stand at the right, text at the left, two blanks between columns. Where
// the terminal is too narrow, the widest of the columns that may be cut gives way
// first, down to its least width. A cell that was cut shows an ellipsis.
//
// # Example
//
// Columns NAME (least 5) and USED (right) with the row "checkout", "1.50", fitted
// to 12 columns:
//
//	NAME    USED
//	check…  1.50
//
// # Limits
//
// Every rune counts as one column. A column is never narrower than its name.
package table

import (
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/page"
)

// gap is the blanks between two columns.
const gap = 2

// Right is a writer of tab-separated rows whose cells stand at the right: figures.
func Right(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, gap, ' ', tabwriter.AlignRight)
}

// Left is a writer of tab-separated rows whose cells stand at the left: text.
func Left(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, gap, ' ', 0) }

// Column is one column. Where the terminal is narrow its cells may be cut to Least
// runes (0: never).
type Column struct {
	Name  string
	Least int
	Tail  bool // cut at the front: the end of a path says more
	Right bool // numbers
}

// Cell is a text with its colour ("": none).
type Cell struct {
	Text, Color string
}

// Table is rows of cells, and how wide each column is.
type Table struct {
	columns []Column
	widths  []int
	rows    [][]Cell
}

// New is a table without rows.
func New(columns []Column) *Table {
	t := &Table{columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = len(c.Name)
	}
	return t
}

// Add appends a row, which has a cell for each column.
func (t *Table) Add(row []Cell) {
	for i, c := range row {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.Text))
	}
	t.rows = append(t.rows, row)
}

// Fit narrows the columns that may be cut, always the widest of them, until the
// table fits or each is at its least. Width 0: nothing is cut.
func (t *Table) Fit(width int) {
	if width <= 0 {
		return
	}
	total := gap * (len(t.columns) - 1)
	for _, w := range t.widths {
		total += w
	}
	for ; total > width; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.Least > 0 && t.widths[i] > max(c.Least, len(c.Name)) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// Write writes the table, with its header in bold unless header is false.
func (t *Table) Write(p *page.Page, header bool) {
	if header {
		names := make([]Cell, len(t.columns))
		for i, c := range t.columns {
			names[i] = Cell{c.Name, page.Bold}
		}
		t.line(p, names)
	}
	for _, row := range t.rows {
		t.line(p, row)
	}
}

func (t *Table) line(p *page.Page, row []Cell) {
	for i, cell := range row {
		c, s := t.columns[i], cell.Text
		if c.Tail {
			s = text.CutFront(s, t.widths[i], "…")
		} else {
			s = text.Cut(s, t.widths[i], "…")
		}
		pad := strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(s))
		if cell.Color != "" {
			s = p.Paint(cell.Color, s)
		}
		switch last := i == len(row)-1; {
		case c.Right:
			s = pad + s
		case !last:
			s += pad
		}
		if i > 0 {
			p.WriteString(strings.Repeat(" ", gap))
		}
		p.WriteString(s)
	}
	p.WriteByte('\n')
}
