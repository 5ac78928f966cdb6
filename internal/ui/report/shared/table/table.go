// Package table lays out rows in columns that give way to a narrow terminal.
//
// # Rule
//
// Figures stand at the right, text at the left, two blanks between columns. Where
// the terminal is too narrow, the widest of the columns that may be cut gives way
// first, down to its least width; a cell that was cut shows an ellipsis, or goes on
// in the line below. Then the columns that can be spared go, the most dispensable first. A table that is still
// too wide becomes a list: a row is a title, with a figure and its name each.
//
// # Example
//
// Columns NAME (least 5) and USED (right) with the row "checkout", "1.50", fitted
// to 12 columns, and to 8:
//
//	NAME    USED
//	check…  1.50
//
//	checkout
//	  USED 1.50
//
// # Limits
//
// Every rune counts as one column. A column is never narrower than its name.
package table

import (
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// gap is the blanks between two columns.
const gap = 2

// Column is one column. Where the terminal is narrow its cells may be cut to Least
// runes (0: never).
type Column struct {
	Name  string
	Least int
	Tail  bool // cut at the front: the end of a path says more
	Right bool // numbers
	Spare int  // above 0: may be left out, the highest first
	Fill  bool // of the last column: cells go on below where they are cut
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
	spared  []string // names of columns that were left out
	list    bool     // too wide even so
	indent  int      // blanks before the first column
	// plainHead: the header is not bold, and left out where no column has a name.
	plainHead bool
}

// New is a table without rows.
func New(columns []Column) *Table {
	t := &Table{columns: slices.Clone(columns), widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = text.Width(c.Name)
	}
	return t
}

// Add appends a row, which has a cell for each column.
func (t *Table) Add(row []Cell) {
	for i, c := range row {
		t.widths[i] = max(t.widths[i], text.Width(c.Text))
	}
	t.rows = append(t.rows, row)
}

// Width is how many columns of a terminal the table takes.
func (t *Table) Width() int {
	total := t.indent + gap*(len(t.columns)-1)
	for _, w := range t.widths {
		total += w
	}
	return total
}

// Fit makes the table fit so many columns: it cuts what may be cut, always the widest
// first, then leaves out what can be spared, and makes a list of the rest. Width 0:
// nothing is cut. Before Fit nothing is.
func (t *Table) Fit(width int) {
	if width <= 0 {
		return
	}
	all, rows := slices.Clone(t.columns), slices.Clone(t.rows)
	whole := slices.Clone(t.widths)
	for !t.cut(width) {
		spare := t.mostSpare()
		if spare < 0 {
			t.columns, t.rows, t.spared, t.list = all, rows, nil, true
			return
		}
		t.spared = append(t.spared, t.columns[spare].Name)
		t.columns, whole = slices.Delete(t.columns, spare, spare+1), slices.Delete(whole, spare, spare+1)
		t.widths = slices.Clone(whole)
		for i, row := range t.rows {
			t.rows[i] = slices.Delete(slices.Clone(row), spare, spare+1)
		}
	}
}

// cut narrows columns until the table fits; false: it does not.
func (t *Table) cut(width int) bool {
	for total := t.Width(); total > width; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.Least > 0 && t.widths[i] > max(c.Least, text.Width(c.Name)) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		t.widths[widest]--
	}
	return true
}

// mostSpare is the column that is left out next; below 0: none.
func (t *Table) mostSpare() int {
	most := -1
	for i, c := range t.columns {
		if c.Spare > 0 && (most < 0 || c.Spare > t.columns[most].Spare) {
			most = i
		}
	}
	return most
}

// Missing says on the page which columns Fit left out.
func (t *Table) Missing(p *page.Page) {
	if len(t.spared) > 0 {
		p.Paragraph("Columns left out: " + strings.Join(t.spared, ", ") + " (--json has all).")
	}
}

// Has reports whether the table has a column of that name, after Fit.
func (t *Table) Has(name string) bool {
	return slices.ContainsFunc(t.columns, func(c Column) bool { return c.Name == name })
}

// Write writes the table, with its header in bold unless header is false.
func (t *Table) Write(p *page.Page, header bool) {
	if t.list {
		t.asList(p)
		return
	}
	if header {
		names := make([]Cell, len(t.columns))
		for i, c := range t.columns {
			names[i].Text = c.Name
			if !t.plainHead {
				names[i].Color = page.Bold
			}
		}
		t.line(p, names)
	}
	for _, row := range t.rows {
		t.line(p, row)
	}
}

func (t *Table) line(p *page.Page, row []Cell) {
	line := strings.Repeat(" ", t.indent)
	for i, cell := range row {
		c, s := t.columns[i], cell.Text
		switch {
		case c.Fill:
			p.Hanging(line+strings.Repeat(" ", gap), p.Paint(cell.Color, s))
			return
		case c.Tail:
			s = text.CutFront(s, t.widths[i], "…")
		default:
			s = text.Cut(s, t.widths[i], "…")
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-text.Width(s)))
		s = p.Paint(cell.Color, s)
		if c.Right {
			s = pad + s
		} else {
			s += pad
		}
		if i > 0 {
			line += strings.Repeat(" ", gap)
		}
		line += s
	}
	p.Line(line)
}

// asList writes each row as its first cell, and below it the others with their names.
func (t *Table) asList(p *page.Page) {
	for _, row := range t.rows {
		p.Line(p.Paint(row[0].Color, row[0].Text))
		indent := strings.Repeat(" ", len(row[0].Text)-len(strings.TrimLeft(row[0].Text, " >"))+gap)
		var parts []string
		for i, cell := range row[1:] {
			if cell.Text == "" {
				continue
			}
			name := t.columns[i+1].Name
			if name != "" {
				name += " "
			}
			parts = append(parts, name+p.Paint(cell.Color, cell.Text))
		}
		p.Hanging(indent, strings.Join(parts, ", "))
	}
}
