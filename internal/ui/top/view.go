package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/timeline"
)

const (
	red     = "\x1b[31m"
	amber   = "\x1b[33m"
	dim     = "\x1b[2m"
	bold    = "\x1b[1m"
	inverse = "\x1b[7m"
	plain   = "\x1b[0m"
)

// The lines around the table: title, note, header; and the keys below.
const frameRows = 4

func (m *Model) bodyRows() int { return max(1, m.height-frameRows) }
func (m *Model) pageRows() int { return max(1, m.height-2) }

// View implements tea.Model.
func (m Model) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	v.WindowTitle = "unthrottle top"
	return v
}

// Screen is what is shown, a line per row of the terminal.
func (m Model) Screen() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	var lines []string
	switch {
	case m.help:
		lines = m.helpLines()
	case m.page != nil:
		lines = m.pageLines()
	default:
		lines = m.tableLines()
	}
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "…")
	}
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}

func (m *Model) paint(style, text string) string {
	if !m.Color || style == "" {
		return text
	}
	return style + text + plain
}

func (m *Model) tableLines() []string {
	rows := m.rows()
	lines := []string{m.title(rows), m.note(), m.header()}
	at := m.at(rows)
	for i := m.top; i < min(len(rows), m.top+m.bodyRows()); i++ {
		lines = append(lines, m.line(&rows[i], i == at))
	}
	if len(rows) == 0 {
		lines = append(lines, m.nothing())
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines, m.foot())
}

func (m *Model) nothing() string {
	switch {
	case m.frame.At.IsZero():
		return "  looking ..."
	case m.filter != "":
		return "  no container fits " + strconv.Quote(m.filter)
	}
	return "  no containers"
}

func (m *Model) title(rows []containerRow) string {
	stopped := 0
	for i := range rows {
		if rows[i].stopped() >= noticed {
			stopped++
		}
	}
	text := fmt.Sprintf("unthrottle top   %s, %d stopped", text.Count(len(rows), "container"), stopped)
	if !m.frame.At.IsZero() {
		text += "   " + m.frame.At.Format(time.TimeOnly)
	}
	if m.paused {
		text += "   PAUSED"
	}
	return m.paint(bold, text)
}

func (m *Model) note() string {
	if m.typing {
		return "filter: " + m.filter + "_"
	}
	note := "by " + orderNames[m.order]
	if m.reverse {
		note += ", reversed"
	}
	if m.filter != "" {
		note += ", filter " + strconv.Quote(m.filter)
	}
	if m.frame.Note != "" {
		note += ". " + text.Sanitize(m.frame.Note, 200)
	}
	return m.paint(dim, note)
}

func (m *Model) foot() string {
	return m.paint(dim, "↑↓ move  enter explain  s/u/w/n/c sort  r reverse  / filter  p pause  ? help  q quit")
}

func (m *Model) helpLines() []string {
	return []string{
		m.paint(bold, "unthrottle top"), "",
		"  ↑ ↓ k j, page up and down, g G   move",
		"  enter    record this container and explain it",
		"  s        sort by stopped time (the start)",
		"  u w n c  sort by CPU used, width, name, cause",
		"  r        reverse",
		"  /        filter by name, path or cause; esc clears it",
		"  p        pause the screen",
		"  q        quit", "",
		"STOPPED is wall time in which a runnable thread was held back by a quota. MOST is the most",
		"CPUs in use at once, WANTED running and runnable threads on average. The timeline is the last",
		"seconds, the newest right: the height is CPUs in use, " + string(timeline.New(m.ASCII).Held) + " stopped, . idle.", "",
		"Any key goes back.",
	}
}

func (m *Model) pageLines() []string {
	p := m.page
	lines := []string{m.paint(bold, text.Sanitize(p.name, 60)) + "   " + m.paint(dim, text.Sanitize(p.path, 120))}
	switch {
	case !p.done:
		lines = append(lines, "", "  recording "+m.progress(p.elapsed))
	case p.failed != "":
		lines = append(lines, "", "  "+text.Sanitize(p.failed, 400))
	default:
		end := min(len(p.lines), p.top+m.pageRows())
		lines = append(lines, p.lines[p.top:end]...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines, m.paint(dim, "↑↓ scroll  r again  esc back"))
}

func (m *Model) progress(elapsed time.Duration) string {
	const cells = 30
	if m.ExplainFor <= 0 {
		return elapsed.Truncate(time.Second).String()
	}
	n := int(min(1, max(0, elapsed.Seconds()/m.ExplainFor.Seconds())) * cells)
	full, empty := "█", "░"
	if m.ASCII {
		full, empty = "#", "."
	}
	return fmt.Sprintf("%s%s %.0f of %.0f s", strings.Repeat(full, n), strings.Repeat(empty, cells-n), min(elapsed, m.ExplainFor).Seconds(), m.ExplainFor.Seconds())
}
