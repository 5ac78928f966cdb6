package study

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// Page is Markdown under way. The zero value is an empty page.
type Page struct{ b strings.Builder }

// String is the page so far.
func (p *Page) String() string { return p.b.String() }

// Line writes a line.
func (p *Page) Line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// Text writes text as it is.
func (p *Page) Text(text string) { p.b.WriteString(text) }

// Table begins a table with these heads, after an empty line. A column whose head ends in a colon is aligned to the right.
func (p *Page) Table(heads ...string) *Table {
	if text := p.b.String(); text != "" && !strings.HasSuffix(text, "\n\n") {
		p.b.WriteByte('\n')
	}
	t := &Table{p, len(heads)}
	cells, rule := make([]any, len(heads)), "|"
	for i, head := range heads {
		name, right := strings.CutSuffix(head, ":")
		cells[i] = name
		if right {
			rule += "---:|"
		} else {
			rule += "---|"
		}
	}
	t.Row(cells...)
	p.Line("%s", rule)
	return t
}

// Table is a table under way: rows follow its head on the page.
type Table struct {
	page    *Page
	columns int
}

// inCell keeps a text within its cell.
var inCell = strings.NewReplacer("|", `\|`, "\r", " ", "\n", " ")

// Row writes a row. Cells that are missing are empty; it panics where there are more than columns.
func (t *Table) Row(cells ...any) {
	if len(cells) > t.columns {
		panic(fmt.Sprintf("a row of %d cells in a table of %d columns: %v", len(cells), t.columns, cells))
	}
	t.page.b.WriteByte('|')
	for i := range t.columns {
		if i < len(cells) {
			if text := fmt.Sprint(cells[i]); text != "" {
				t.page.b.WriteString(" " + inCell.Replace(text))
			}
		}
		t.page.b.WriteString(" |")
	}
	t.page.b.WriteByte('\n')
}

// Rowf writes a row of cells that a format makes, with " | " between them. What the arguments hold stays within its cell. It
// panics where there are more arguments than verbs.
func (t *Table) Rowf(format string, args ...any) {
	var cells []any
	for cell := range strings.SplitSeq(format, " | ") {
		n := strings.Count(strings.ReplaceAll(cell, "%%", ""), "%")
		cells, args = append(cells, fmt.Sprintf(cell, args[:n]...)), args[n:]
	}
	if len(args) > 0 {
		panic(fmt.Sprintf("%d arguments without a verb in %q", len(args), format))
	}
	t.Row(cells...)
}

// Decimals is a figure with so many decimals; "-": it was not measured.
func Decimals(v *float64, n int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', n, 64)
}

// Fill fills in a page's template. It panics where the template and its values do not fit.
func Fill(page string, funcs template.FuncMap, values any) string {
	var b strings.Builder
	if err := template.Must(template.New("").Funcs(funcs).Parse(page)).Execute(&b, values); err != nil {
		panic(err)
	}
	return b.String()
}
