package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// order of the rows.
type order int

// Orders, in the order in which the help lists them.
const (
	byStopped order = iota
	byUsed
	byWidth
	byName
	byCause
)

var orderNames = [...]string{"stopped", "used", "width", "name", "cause"}

// Model is what is on the screen. The zero value of all but Explain is the start.
type Model struct {
	// Explain records one container and explains it; asked by the enter key.
	Explain func(path string) tea.Cmd
	// Fix runs `unthrottle fix` on a container, with the terminal to itself; asked by the f key. nil: there is none.
	Fix func(path string) tea.Cmd
	// ExplainFor is how long that records, for its progress.
	ExplainFor time.Duration
	Color      bool
	ASCII      bool

	width, height int
	frame         Frame
	paused        bool
	order         order
	reverse       bool
	filter        string
	typing        bool // the filter is being typed
	help          bool
	helpTop       int    // first line of the help shown
	told          string // what the last key did
	selected      string // path: rows change places, the selection stays with its container
	chosen        bool   // the selection was moved from the first row; until then it stays there, on the worst
	top           int    // first row shown
	page          *page  // an explanation is open
}

// page is one explanation, or the wait for it.
type page struct {
	name, path string
	since      time.Time // of the first tick
	elapsed    time.Duration
	text       func(width int) string
	failed     string
	done       bool
	top        int
}

// Explained is the message with a finished explanation.
type Explained struct {
	Path string
	// Text is the explanation for a terminal so wide.
	Text func(width int) string
	Err  error
}

// tickMsg moves the progress of a running explanation.
type tickMsg time.Time

// Init implements tea.Model.
func (m Model) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.helpTop = min(m.helpTop, m.lastTop(m.helpText()))
		if m.page != nil {
			p := *m.page
			p.top = min(p.top, m.lastTop(m.textOf(&p)))
			m.page = &p
		}
	case Frame:
		if !m.paused || m.frame.At.IsZero() { // an empty screen is nothing to look at
			m.frame = msg
		}
	case tickMsg:
		if m.page != nil && !m.page.done {
			p := *m.page
			if p.since.IsZero() {
				p.since = time.Time(msg)
			}
			p.elapsed = time.Time(msg).Sub(p.since)
			m.page = &p
			return m, tick()
		}
	case Explained:
		m.explained(msg)
	case Fixed:
		if msg.Err != nil {
			m.told = "fix could not be run: " + msg.Err.Error()
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	}
	return m.keepSelection(), nil
}

// explained opens the text, unless the user has left meanwhile.
func (m *Model) explained(msg Explained) {
	if m.page == nil || m.page.path != msg.Path || m.page.done {
		return
	}
	p := *m.page
	p.done = true
	if msg.Err != nil {
		p.failed = msg.Err.Error()
	}
	p.text = msg.Text
	m.page = &p
}

func tick() tea.Cmd {
	return tea.Tick(200*time.Millisecond, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// rows are those that pass the filter, in order.
func (m *Model) rows() []containerRow {
	rows := make([]containerRow, 0, len(m.frame.Rows))
	want := strings.ToLower(m.filter)
	for _, r := range m.frame.Rows {
		if want == "" || strings.Contains(strings.ToLower(r.Name+" "+r.Path+" "+string(r.Cause)), want) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b containerRow) int {
		c := m.order.compare(&a, &b)
		if c == 0 {
			c = cmp.Compare(b.stopped(), a.stopped())
		}
		if m.reverse {
			c = -c
		}
		if c == 0 {
			return cmp.Compare(a.Path, b.Path)
		}
		return c
	})
	return rows
}

func (o order) compare(a, b *containerRow) int {
	switch o {
	case byUsed:
		return cmp.Compare(value(b.UsedCPUs), value(a.UsedCPUs))
	case byWidth:
		return cmp.Compare(value(b.MostWidth), value(a.MostWidth))
	case byName:
		return cmp.Compare(a.Name, b.Name)
	case byCause:
		return cmp.Compare(a.Cause, b.Cause)
	}
	return cmp.Compare(b.stopped(), a.stopped())
}

// value orders what was not measured last.
func value[T int | float64](p *T) T {
	if p == nil {
		return -1
	}
	return *p
}

// keepSelection keeps the selection on its container and on the screen; a container that is gone hands it to the row
// in its place.
func (m Model) keepSelection() Model {
	rows := m.rows()
	if len(rows) == 0 {
		m.top = 0
		return m
	}
	at := 0
	if m.chosen {
		at = m.at(rows)
	}
	m.selected = rows[at].Path
	body := m.bodyRows()
	m.top = min(max(m.top, at-body+1), at)
	m.top = max(0, min(m.top, len(rows)-body))
	return m
}

// at is the selected row; the first, where there is none.
func (m *Model) at(rows []containerRow) int {
	return max(0, slices.IndexFunc(rows, func(r containerRow) bool { return r.Path == m.selected }))
}

func (m Model) move(by int) Model {
	rows := m.rows()
	if len(rows) > 0 {
		at := min(max(0, m.at(rows)+by), len(rows)-1)
		m.selected, m.chosen = rows[at].Path, at > 0
	}
	return m.keepSelection()
}
