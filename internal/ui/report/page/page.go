// Package page collects the lines of a view for a terminal of a given width.
//
// # Problem
//
// Views wrap sentences, hang them behind a lead and paint words. Where colour is
// off, or a view is written to a file, not one byte of an escape may remain.
//
// # Rule
//
// A line ends without blanks. Wrapping counts columns without colours. A word
// that is wider than the page stays whole: readers copy it.
//
// # Example
//
// On a page of 20 columns, Hanging("1. ", "the quota was spent early") gives
//
//  1. the quota was
//     spent early
//
// # Limits
//
// Every rune counts as one column.
package page

import (
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// defaultWidth is the width of a page, in columns, where none is given.
const defaultWidth = 80

// ANSI sequences of the colours that views use; Plain ends each.
const (
	Bold  = "\x1b[1m"
	Red   = "\x1b[31m"
	Amber = "\x1b[33m"
	Plain = "\x1b[0m"
)

// Page is a view under way. The zero value is a page of no width in black and white.
type Page struct {
	strings.Builder
	Columns int  // its width
	Color   bool // ANSI colours
}

// New begins a page of width columns, bounded by least and most (0: not bounded);
// width 0 or below means defaultWidth.
func New(width, least, most int, color bool) *Page {
	if width <= 0 {
		width = defaultWidth
	}
	width = max(width, least)
	if most > 0 {
		width = min(width, most)
	}
	return &Page{Columns: width, Color: color}
}

// Line writes one line as it is, without the blanks at its end.
func (p *Page) Line(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// Lines writes several lines.
func (p *Page) Lines(lines []string) {
	for _, line := range lines {
		p.Line(line)
	}
}

// Paragraph writes a text, wrapped at the width.
func (p *Page) Paragraph(s string) { p.Hanging("", s) }

// Hanging writes a text behind a lead, its further lines below its first word.
func (p *Page) Hanging(lead, s string) {
	for i, line := range text.Fill(s, p.Columns-text.Width(lead)) {
		if i > 0 {
			lead = strings.Repeat(" ", text.Width(lead))
		}
		p.Line(lead + line)
	}
}

// Section begins a section: an empty line, then its title.
func (p *Page) Section(title string) {
	p.WriteByte('\n')
	p.Hanging("", title)
}

// Wrapped writes parts one after the other with a separator between them, and
// breaks lines at the width. The first line begins with first, others with next.
func (p *Page) Wrapped(first, next, separator string, parts []string) {
	bare := strings.TrimRight(separator, " ")
	line, columns, empty := first, text.Width(first), true
	for i, part := range parts {
		if i < len(parts)-1 {
			part += bare
		}
		gap := separator[len(bare):]
		if !empty && columns+len(gap)+text.Width(part) > p.Columns {
			p.Line(line)
			line, columns, empty = next, text.Width(next), true
		}
		if !empty {
			line += gap
			columns += len(gap)
		}
		line += part
		columns += text.Width(part)
		empty = false
	}
	p.Line(line)
}

// Paint colours a text where the page has colours.
func (p *Page) Paint(code, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return code + s + Plain
}

// Bolden is Paint in bold.
func (p *Page) Bolden(s string) string { return p.Paint(Bold, s) }

// Send writes the page to w.
func (p *Page) Send(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}
