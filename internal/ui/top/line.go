package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Shares of stopped time from which a row is marked.
const (
	noticed = 0.01
	alarm   = 0.1
)

// missing stands for what was not measured.
const missing = "-"

// column of the table. Widths are fixed so that figures stay in place from one frame to the next; the name takes what
// the strip leaves.
type column struct {
	title string
	width int
	cell  func(*Row) string
}

// columns are those that fit beside a name; the less telling ones go first.
func (m *Model) columns() []column {
	all := []column{
		{"STOPPED", 12, stoppedCell},
		{"LIMIT", 6, limitCell},
		{"USED", 6, func(r *Row) string { return number(r.UsedCPUs, 2) }},
		{"MOST", 5, mostCell},
		{"WANTED", 7, func(r *Row) string { return number(r.Wanted, 1) }},
		{"CAUSE", 10, causeCell},
	}
	for _, title := range []string{"WANTED", "MOST", "LIMIT", "USED"} {
		need := marked + nameLeast
		for _, c := range all {
			need += c.width + 1
		}
		if need <= m.width {
			break
		}
		all = slices.DeleteFunc(all, func(c column) bool { return c.title == title })
	}
	return all
}

// marked is the room of the mark of the row that is selected.
const marked = 2

const (
	nameLeast = 12
	nameMost  = 40
	stripMost = 60
)

// room is how wide name and strip are.
func (m *Model) room() (name, strip int) {
	left := m.width - marked
	for _, c := range m.columns() {
		left -= c.width + 1
	}
	name = min(nameMost, max(nameLeast, left/2))
	return name, min(stripMost, max(0, left-name-1))
}

func (m *Model) header() string {
	name, strip := m.room()
	text := "  " + pad("CONTAINER", name)
	for _, c := range m.columns() {
		text += " " + pad(c.title, c.width)
	}
	if strip >= len("LAST") {
		text += " LAST SECONDS"
	}
	return m.paint(bold, text)
}

func (m *Model) line(r *Row, selected bool) string {
	name, strip := m.room()
	mark := "  "
	if selected {
		mark = "> "
	}
	text := mark + pad(text.Sanitize(r.Name, name), name)
	for _, c := range m.columns() {
		cell := pad(c.cell(r), c.width)
		if c.title == "STOPPED" && !selected {
			cell = m.paint(level(r), cell)
		}
		text += " " + cell
	}
	picture := m.strip(r, strip)
	if selected && m.Color {
		return inverse + text + plain + " " + picture
	}
	return text + " " + picture
}

func level(r *Row) string {
	switch s := r.stopped(); {
	case s >= alarm:
		return red
	case s >= noticed:
		return amber
	}
	return ""
}

func pad(text string, width int) string {
	n := utf8.RuneCountInString(text)
	if n > width {
		return string([]rune(text)[:max(0, width-1)]) + "…"
	}
	return text + strings.Repeat(" ", width-n)
}

func stoppedCell(r *Row) string {
	if r.StoppedLow == nil || r.StoppedHigh == nil {
		return missing
	}
	low, high := fmt.Sprintf("%.0f", *r.StoppedLow*1000), fmt.Sprintf("%.0f", *r.StoppedHigh*1000)
	if low == high {
		return high + "ms/s"
	}
	return low + "-" + high + "ms/s"
}

func limitCell(r *Row) string {
	switch {
	case r.LimitCPUs != nil:
		return strconv.FormatFloat(*r.LimitCPUs, 'g', 4, 64)
	case r.Unlimited:
		return "none"
	}
	return missing
}

func number(v *float64, digits int) string {
	if v == nil {
		return missing
	}
	return strconv.FormatFloat(*v, 'f', digits, 64)
}

func mostCell(r *Row) string {
	if r.MostWidth == nil {
		return missing
	}
	return strconv.Itoa(*r.MostWidth)
}

func causeCell(r *Row) string {
	switch r.Cause {
	case "":
		return missing
	case diagnose.None:
		return "ok"
	}
	return string(r.Cause)
}

type glyphs struct {
	heights []rune
	held    rune
}

func (m *Model) glyphs() glyphs {
	if m.ASCII {
		return glyphs{[]rune("123456789"), 'x'}
	}
	return glyphs{[]rune("▁▂▃▄▅▆▇█"), '░'}
}

// strip draws a row's last cells, the newest right. Heights are relative to the limit, or to the widest cell where
// there is none or where it was wider.
func (m *Model) strip(r *Row, width int) string {
	cells := r.Strip[max(0, len(r.Strip)-width):]
	full := 0.0
	if r.LimitCPUs != nil {
		full = *r.LimitCPUs
	}
	for _, c := range cells {
		full = max(full, c.Width)
	}
	g := m.glyphs()
	var b strings.Builder
	style := ""
	for _, c := range cells {
		glyph, want := ' ', ""
		switch {
		case c.Stopped >= 0.5:
			glyph, want = g.held, red
		case c.Width < 0:
			glyph = ' '
		case full <= 0 || c.Width < 0.02*full:
			glyph, want = '.', dim
		default:
			glyph = g.heights[min(len(g.heights)-1, int(c.Width/full*float64(len(g.heights))))]
			if c.Stopped > 0 {
				want = amber
			}
		}
		if m.Color && want != style {
			b.WriteString(plain + want)
			style = want
		}
		b.WriteRune(glyph)
	}
	if style != "" {
		b.WriteString(plain)
	}
	return b.String()
}
