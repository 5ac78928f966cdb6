package table

import (
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// Field is a column of values: its head, what it shows of each, and in which colour.
type Field[T any] struct {
	Column
	Text  func(T) string
	Color func(T) string // nil: none
}

// Of is a table with a row for each value.
func Of[T any](fields []Field[T], values []T) *Table {
	heads := make([]Column, len(fields))
	for i, f := range fields {
		heads[i] = f.Column
	}
	t := New(heads)
	for _, v := range values {
		row := make([]Cell, len(fields))
		for i, f := range fields {
			row[i].Text = f.Text(v)
			if f.Color != nil {
				row[i].Color = f.Color(v)
			}
		}
		t.Add(row)
	}
	return t
}

// Fitted writes the table as wide as the page allows, and says which columns had no room.
func (t *Table) Fitted(p *page.Page) {
	t.Fit(p.Columns)
	t.Write(p, true)
	t.Missing(p)
}

// Figures writes a table of values whose columns all stand at the right, set off from the text around it.
func Figures[T any](w io.Writer, style page.Style, fields []Field[T], values []T) {
	for i := range fields {
		fields[i].Right = true
	}
	t := Of(fields, values)
	t.indent, t.plainHead = gap, true
	t.send(w, style)
}

// leastFill is the least width of a last column of text that goes on below.
const leastFill = 24

// Texts writes a table of values whose columns stand at the left; the last goes on below where it is cut.
func Texts[T any](w io.Writer, style page.Style, fields []Field[T], values []T) error {
	last := &fields[len(fields)-1]
	last.Fill, last.Least = true, leastFill
	t := Of(fields, values)
	t.plainHead = true
	return t.send(w, style)
}

// Lines writes lines of cells below each other, without heads; the last cell of the longest goes on below where it is cut.
func Lines(b *strings.Builder, style page.Style, lines [][]string) {
	most := 0
	for _, cells := range lines {
		most = max(most, len(cells))
	}
	if most == 0 {
		return
	}
	columns := make([]Column, most)
	columns[most-1].Fill, columns[most-1].Least = true, leastFill
	t := New(columns)
	for _, cells := range lines {
		row := make([]Cell, most)
		for i, cell := range cells {
			row[i].Text = cell
		}
		t.Add(row)
	}
	p := page.New(style, 0, 0)
	t.Fit(p.Columns)
	t.Write(p, false)
	b.WriteString(p.String())
}

func (t *Table) send(w io.Writer, style page.Style) error {
	if len(t.rows) == 0 {
		return nil
	}
	p := page.New(style, 0, 0)
	t.Fitted(p)
	_, err := io.WriteString(w, p.String())
	return err
}
