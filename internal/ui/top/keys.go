package top

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// maxFilter bounds what is typed, in bytes.
const maxFilter = 100

func (m Model) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch {
	case k.String() == "ctrl+c":
		return m, tea.Quit
	case m.typing:
		return m.typeKey(k), nil
	case m.help:
		if by := m.step(k.String()); by != 0 {
			m.helpTop = min(max(0, m.helpTop+by), m.lastTop(m.helpText()))
			return m, nil
		}
		m.help, m.helpTop = false, 0
		return m, nil
	case m.page != nil:
		return m.pageKey(k)
	}
	m.told = ""
	switch k.String() {
	case "q":
		return m, tea.Quit
	case "f":
		return m.fix()
	case "y":
		return m.copyCommand()
	case "esc":
		m.filter = ""
	case "?", "h":
		m.help = true
	case "/":
		m.typing = true
	case "p", "space":
		m.paused = !m.paused
	case "s", "u", "w", "n", "c":
		m.order, m.reverse = map[string]order{"s": byStopped, "u": byUsed, "w": byWidth, "n": byName, "c": byCause}[k.String()], false
	case "r":
		m.reverse = !m.reverse
	case "enter":
		return m.open()
	default:
		return m.move(m.step(k.String())), nil
	}
	return m.keepSelection(), nil
}

// step is how many rows a key moves by.
func (m *Model) step(key string) int {
	switch key {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup":
		return -m.bodyRows()
	case "pgdown":
		return m.bodyRows()
	case "home", "g":
		return -1 << 30
	case "end", "G":
		return 1 << 30
	}
	return 0
}

func (m Model) typeKey(k tea.KeyPressMsg) Model {
	switch k.String() {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	default:
		if len(m.filter)+len(k.Text) <= maxFilter {
			m.filter += k.Text
		}
	}
	return m.keepSelection()
}

func (m Model) open() (tea.Model, tea.Cmd) {
	rows := m.rows()
	if len(rows) == 0 || m.Explain == nil {
		return m, nil
	}
	r := rows[m.at(rows)]
	m.page = &page{name: r.Name, path: r.Path}
	return m, tea.Batch(m.Explain(r.Path), tick())
}

func (m Model) pageKey(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	p := *m.page
	switch key := k.String(); key {
	case "q", "esc", "left", "backspace":
		m.page, m.told = nil, ""
		return m, nil
	case "f":
		return m.fix()
	case "y":
		return m.copyCommand()
	case "r", "enter":
		if p.done {
			m.page = &page{name: p.name, path: p.path}
			return m, tea.Batch(m.Explain(p.path), tick())
		}
	default:
		p.top = min(max(0, p.top+m.step(key)), m.lastTop(m.textOf(&p)))
	}
	m.page = &p
	return m, nil
}
