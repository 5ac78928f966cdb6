package table

import (
	"io"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// Rows is a writer of lines whose cells tabs separate. Its first line is the header. A
// line without a tab ends the table before it, and stands as it is; what follows has no
// header.
type Rows struct {
	w     io.Writer
	style page.Style
	right bool
	spare []string // names of columns that may be left out, the first one first
	lines strings.Builder
}

// Spare names columns that a narrow terminal may go without, the most dispensable first.
func (r *Rows) Spare(names ...string) *Rows {
	r.spare = names
	return r
}

// Right is for cells that stand at the right: figures. Each line ends with a tab.
func Right(w io.Writer, style page.Style) *Rows { return &Rows{w: w, style: style, right: true} }

// Left is for cells that stand at the left: text. The last cell may go on below.
func Left(w io.Writer, style page.Style) *Rows { return &Rows{w: w, style: style} }

// Write takes lines; Flush lays them out.
func (r *Rows) Write(p []byte) (int, error) { return r.lines.Write(p) }

// Flush writes what was taken, fitted to the width.
func (r *Rows) Flush() error {
	p := page.New(r.style, 0, 0)
	header := true
	var block [][]string
	flush := func() {
		if len(block) > 0 {
			r.block(p, block, header)
			header = false
		}
		block = nil
	}
	for line := range strings.Lines(r.lines.String()) {
		line = strings.TrimSuffix(line, "\n")
		if r.right {
			line = strings.TrimSuffix(line, "\t")
		}
		if !strings.Contains(line, "\t") {
			flush()
			header = header && line == ""
			p.Line(line)
			continue
		}
		block = append(block, strings.Split(line, "\t"))
	}
	flush()
	r.lines.Reset()
	_, err := io.WriteString(r.w, p.String())
	return err
}

// leastFill is the least width of a last column of text that goes on below.
const leastFill = 24

// block lays out lines that follow each other.
func (r *Rows) block(p *page.Page, lines [][]string, header bool) {
	most := 0
	for _, cells := range lines {
		most = max(most, len(cells))
	}
	columns := make([]Column, most)
	for i := range columns {
		columns[i].Right = r.right
		if header && i < len(lines[0]) {
			columns[i].Name = lines[0][i]
			if at := slices.Index(r.spare, columns[i].Name); at >= 0 {
				columns[i].Spare = len(r.spare) - at
			}
		}
	}
	if last := &columns[most-1]; !r.right {
		last.Fill, last.Least = true, leastFill
	}
	t := New(columns)
	if r.right {
		t.indent = gap
	}
	if header {
		lines = lines[1:]
	}
	for _, cells := range lines {
		row := make([]Cell, most)
		for i, cell := range cells {
			row[i].Text = cell
		}
		t.Add(row)
	}
	t.Fit(p.Columns)
	t.plain(p, header)
	t.Missing(p)
}

// plain is Write without bold.
func (t *Table) plain(p *page.Page, header bool) {
	if header && !t.list {
		names := make([]Cell, len(t.columns))
		for i, c := range t.columns {
			names[i].Text = c.Name
		}
		t.line(p, names)
	}
	t.Write(p, false)
}
