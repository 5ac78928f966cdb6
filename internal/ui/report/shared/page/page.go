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
// that is wider than the page stays whole: readers copy it. [Style.Send] is the last
// step of every view: it breaks what is still too wide, and makes ASCII of it.
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

// Unbounded is a width that no line has.
const Unbounded = 1 << 30

// ANSI sequences of the colours that views use; Plain ends each.
const (
	Bold  = "\x1b[1m"
	Red   = "\x1b[31m"
	Amber = "\x1b[33m"
	Green = "\x1b[32m"
	Plain = "\x1b[0m"
)

// Style is how the text of a view looks. The zero value is 80 columns in black and white, with characters beyond ASCII.
type Style struct {
	Width int  // of the terminal in columns; 0: 80
	ASCII bool // no character beyond ASCII
	Color bool // ANSI colours
}

// Columns is the width, 80 where none is given.
func (s Style) Columns() int {
	if s.Width <= 0 {
		return defaultWidth
	}
	return s.Width
}

// Paint colours a text where the style has colours.
func (s Style) Paint(code, text string) string {
	if !s.Color || text == "" || code == "" {
		return text
	}
	return code + text + Plain
}

// Send writes a view's text to w: broken where a line is too wide, and in ASCII where the style is.
func (s Style) Send(w io.Writer, t string) error {
	if s.ASCII {
		t = text.ASCII(t)
	}
	_, err := io.WriteString(w, text.Fit(t, s.Columns()))
	return err
}

// Page is a view under way. The zero value is a page of no width in black and white.
type Page struct {
	strings.Builder
	Columns int   // its width
	Style   Style // Style.Width is Columns
}

// New begins a page in a style, its width bounded by least and most (0: not bounded).
func New(style Style, least, most int) *Page {
	width := max(style.Columns(), least)
	if most > 0 {
		width = min(width, most)
	}
	style.Width = width
	return &Page{Columns: width, Style: style}
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
func (p *Page) Paint(code, s string) string { return p.Style.Paint(code, s) }

// Bolden is Paint in bold.
func (p *Page) Bolden(s string) string { return p.Paint(Bold, s) }

// Send writes the page to w.
func (p *Page) Send(w io.Writer) error { return p.Style.Send(w, p.String()) }
