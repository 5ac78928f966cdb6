package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/timeline"
)

const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
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
		lines[i] = ansi.Truncate(l, m.width, text.Either(m.ASCII, "~", "…"))
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
	return m.withFoot(lines, m.foot())
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
	parts := []string{"unthrottle top", fmt.Sprintf("%s, %d stopped", text.Count(len(rows), "container"), stopped)}
	if m.width < narrowScreen {
		parts = parts[1:]
	}
	if m.paused {
		parts = append(parts, "PAUSED")
	}
	if !m.frame.At.IsZero() {
		parts = append(parts, m.frame.At.Format("15:04:05 MST"))
	}
	return m.paint(bold, strings.Join(parts, "   "))
}

func (m *Model) note() string {
	if m.typing {
		return "filter: " + m.filter + "_"
	}
	if m.told != "" {
		return m.told
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

// narrowScreen is the width below which the title leaves out the program's name.
const narrowScreen = 60

func (m *Model) foot() string {
	return m.keys("q quit", "? help", "enter explain", "f fix", "y copy", "/ filter", "s/u/w/n/c sort", "r reverse",
		"p pause", m.arrows("move"))
}

// keys are the keys that fit in a line, the most needed first.
func (m *Model) keys(all ...string) string {
	line := ""
	for _, key := range all {
		if line != "" {
			key = "  " + key
		}
		if text.Width(line+key) > m.width {
			break
		}
		line += key
	}
	return m.paint(dim, line)
}

// arrows names the arrow keys.
func (m *Model) arrows(do string) string { return text.Either(m.ASCII, "j/k ", "↑↓ ") + do }

// helpText is the help, fitted to the width.
func (m *Model) helpText() []string {
	help := "  " + text.Either(m.ASCII, "", "↑ ↓ ") + `k j, page up and down, g G  move
  enter    record this container and explain it
  f        run 'unthrottle fix' on it: it forecasts, and asks before it writes
  y        copy that command; the line below the title shows it
  s        sort by stopped time (the start)
  u w n c  sort by CPU used, width, name, cause
  r        reverse
  /        filter by name, path or cause; esc clears it
  p        pause the screen
  q        quit

STOPPED is wall time in which a runnable thread was held back by a quota: red from 100 ms/s on, yellow from 10 ms/s, green below. MOST is the most CPUs in use at once, WANTED running and runnable threads on average. CAUSE is what cost most in the last ten seconds. The timeline is the last seconds, the newest right: the height is CPUs in use, ` +
		string(timeline.New(m.ASCII).Held) + ` stopped, . idle.

Any other key goes back.`
	return strings.Split(text.Fit(help, max(m.width, leastHelp)), "\n")
}

// leastHelp is the width below which help is cut.
const leastHelp = 20

func (m *Model) helpLines() []string {
	all := m.helpText()
	lines := append([]string{m.paint(bold, "unthrottle top")}, all[m.helpTop:min(len(all), m.helpTop+m.pageRows())]...)
	return m.withFoot(lines, m.keys(m.arrows("scroll"), "any other key goes back"))
}

// withFoot puts the foot at the last line of the screen.
func (m *Model) withFoot(lines []string, foot string) []string {
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines, foot)
}

// lastTop is the last line that may be the first one shown of a page or the help.
func (m *Model) lastTop(lines []string) int { return max(0, len(lines)-m.pageRows()) }

// textOf is a finished explanation in lines, fitted to the width.
func (m *Model) textOf(p *page) []string {
	if p.text == nil {
		return nil
	}
	return strings.Split(strings.TrimRight(text.Fit(p.text(m.width), m.width), "\n"), "\n")
}

func (m *Model) pageLines() []string {
	p := m.page
	lines := []string{m.paint(bold, text.Sanitize(p.name, 60))}
	if p.path != p.name {
		lines[0] += "   " + m.paint(dim, text.Sanitize(p.path, 120))
	}
	if m.told != "" {
		lines[0] = m.told
	}
	switch {
	case !p.done:
		lines = append(lines, "", "  recording "+m.progress(p.elapsed))
	case p.failed != "":
		failed := text.Fit("  "+text.Sanitize(p.failed, 400), max(m.width, leastHelp))
		lines = append(append(lines, ""), strings.Split(failed, "\n")...)
		lines = lines[:min(len(lines), max(1, m.height-1))]
	default:
		all := m.textOf(p)
		top := min(p.top, m.lastTop(all))
		lines = append(lines, all[top:min(len(all), top+m.pageRows())]...)
	}
	return m.withFoot(lines, m.keys("esc back", "f fix", "y copy", "r again", m.arrows("scroll")))
}

func (m *Model) progress(elapsed time.Duration) string {
	cells := min(30, max(8, m.width-34))
	if m.ExplainFor <= 0 {
		return elapsed.Truncate(time.Second).String()
	}
	n := int(min(1, max(0, elapsed.Seconds()/m.ExplainFor.Seconds())) * float64(cells))
	full, empty := "█", "░"
	if m.ASCII {
		full, empty = "#", "."
	}
	return fmt.Sprintf("%s%s %.0f of %.0f s", strings.Repeat(full, n), strings.Repeat(empty, cells-n),
		min(elapsed, m.ExplainFor).Seconds(), m.ExplainFor.Seconds())
}
