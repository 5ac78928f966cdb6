package top

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/timeline"
)

// Shares of stopped time from which a row is marked.
const (
	noticed = 0.01
	alarm   = 0.1
)

// missing stands for what was not measured.
const missing = "-"

// column of the table. Widths are fixed so that figures stay in place from one frame to the next; the name takes what
// the timeline leaves.
type column struct {
	title string
	width int
	cell  func(*containerRow) string
}

// columns are those that fit beside a name; the less telling ones go first.
func (m *Model) columns() []column {
	all := []column{
		{"STOPPED", 14, stoppedCell},
		{"LIMIT", 6, limitCell},
		{"USED", 6, func(r *containerRow) string { return number(r.UsedCPUs, 2) }},
		{"MOST", 5, mostCell},
		{"WANTED", 7, func(r *containerRow) string { return number(r.Wanted, 1) }},
		{causeColumn, 10, causeCell},
	}
	for _, title := range []string{"WANTED", "MOST", "LIMIT", "USED", causeColumn} {
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

// causeColumn is the one column of text beside the name.
const causeColumn = "CAUSE"

// marked is the room of the mark of the row that is selected.
const marked = 2

const (
	nameLeast    = 12
	nameMost     = 40
	timelineMost = 60
	// timelineLeast is the width below which a timeline tells nothing and is left out.
	timelineLeast = 8
)

// room is how wide name and timeline are.
func (m *Model) room() (name, last int) {
	left := m.width - marked
	for _, c := range m.columns() {
		left -= c.width + 1
	}
	name = min(nameMost, max(nameLeast, left/2))
	if last = min(timelineMost, left-name-1); last < timelineLeast {
		return min(nameMost, left), 0
	}
	return name, last
}

func (m *Model) header() string {
	name, last := m.room()
	line := "  " + m.fit("CONTAINER", name)
	for _, c := range m.columns() {
		line += " " + m.figure(c, c.title)
	}
	if last > 0 {
		line += " " + text.Either(last < len("LAST SECONDS"), "LAST", "LAST SECONDS")
	}
	return m.paint(bold, line)
}

func (m *Model) line(r *containerRow, selected bool) string {
	name, last := m.room()
	mark := "  "
	if selected {
		mark = "> "
	}
	line := mark + m.fit(text.Sanitize(r.Name, name), name)
	for _, c := range m.columns() {
		cell := m.figure(c, c.cell(r))
		if (c.title == "STOPPED" || c.title == causeColumn) && !selected {
			cell = m.paint(level(r), cell)
		}
		line += " " + cell
	}
	if selected && m.Color {
		line = inverse + line + plain
	}
	if last == 0 {
		return line
	}
	return line + " " + m.timeline(r, last)
}

func level(r *containerRow) string {
	switch s := r.stopped(); {
	case s >= alarm:
		return red
	case s >= noticed:
		return amber
	case s >= 0:
		return green
	}
	return "" // not measured
}

// figure fits a cell into its column: all but the cause stand at the right.
func (m *Model) figure(c column, cell string) string {
	if c.title == causeColumn {
		return m.fit(cell, c.width)
	}
	return strings.Repeat(" ", max(0, c.width-text.Width(cell))) + text.Cut(cell, c.width, text.Either(m.ASCII, "~", "…"))
}

// fit cuts or pads a cell without colours to its width.
func (m *Model) fit(s string, width int) string {
	return text.Pad(text.Cut(s, width, text.Either(m.ASCII, "~", "…")), width)
}

func stoppedCell(r *containerRow) string {
	if r.StoppedLow == nil || r.StoppedHigh == nil {
		return missing
	}
	return text.PerSecond(*r.StoppedLow, *r.StoppedHigh)
}

func limitCell(r *containerRow) string {
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

func mostCell(r *containerRow) string {
	if r.MostWidth == nil {
		return missing
	}
	return strconv.Itoa(*r.MostWidth)
}

func causeCell(r *containerRow) string {
	switch r.Cause {
	case "":
		return missing
	case diagnose.None:
		return "ok"
	}
	return string(r.Cause)
}

// timeline draws a row's last cells, the newest right. Heights are relative to the limit, or to the widest cell where
// there is none or where it was wider.
func (m *Model) timeline(r *containerRow, width int) string {
	cells := r.Timeline[max(0, len(r.Timeline)-width):]
	full := 0.0
	if r.LimitCPUs != nil {
		full = *r.LimitCPUs
	}
	for _, c := range cells {
		full = max(full, c.Width)
	}
	glyphs := timeline.New(m.ASCII)
	var b strings.Builder
	style := ""
	for _, c := range cells {
		glyph, want := ' ', ""
		switch {
		case c.Stopped >= 0.5:
			glyph, want = glyphs.Held, red
		case c.Width < 0:
			glyph = ' '
		case full <= 0 || c.Width < 0.02*full:
			glyph, want = timeline.Idle, dim
		default:
			glyph = glyphs.Height(c.Width / full)
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
