package top

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"

	tea "charm.land/bubbletea/v2"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
)

// copyCommand puts the command that fixes the selected container on the clipboard of the terminal, and shows it:
// not every terminal takes it (OSC 52).
func (m Model) copyCommand() (tea.Model, tea.Cmd) {
	path, ok := m.target()
	if !ok {
		return m, nil
	}
	command := next.Flags{}.Fix(text.EscapePath(path))
	m.told = "copied: " + text.Sanitize(command, 0)
	return m, tea.SetClipboard(command)
}

// fix leaves the screen for `unthrottle fix` on the selected container, which asks before it writes.
func (m Model) fix() (tea.Model, tea.Cmd) {
	path, ok := m.target()
	if !ok || m.Fix == nil {
		return m, nil
	}
	m.told = ""
	return m, m.Fix(path)
}

// target is the path of the container that is selected or whose page is open.
func (m Model) target() (path string, ok bool) {
	if m.page != nil {
		return m.page.path, true
	}
	rows := m.rows()
	if len(rows) == 0 {
		return "", false
	}
	return rows[m.at(rows)].Path, true
}

// follows is the command to type next: it explains the selected container if that is stopped, else the most stopped one;
// "": none is stopped.
func (m *Model) follows() string {
	most, path := 0.0, ""
	for i := range m.frame.Rows {
		switch r := &m.frame.Rows[i]; {
		case r.stopped() < diagnose.Negligible:
		case m.chosen && r.Path == m.selected:
			return next.Explain(text.EscapePath(r.Path))
		case r.stopped() > most:
			most, path = r.stopped(), r.Path
		}
	}
	if path == "" {
		return ""
	}
	return next.Explain(text.EscapePath(path))
}

// Fixed is the message that a fix has ended.
type Fixed struct{ Err error }

// Foreground is a command that has the terminal to itself, and waits for the enter key when it has ended.
type Foreground struct {
	*exec.Cmd
	// Holds is told when the command gets the terminal, and when it has ended; nil: not wanted.
	Holds func(bool)
}

// SetStdin implements tea.ExecCommand.
func (f Foreground) SetStdin(r io.Reader) { f.Stdin = r }

// SetStdout implements tea.ExecCommand.
func (f Foreground) SetStdout(w io.Writer) { f.Stdout = w }

// SetStderr implements tea.ExecCommand.
func (f Foreground) SetStderr(w io.Writer) { f.Stderr = w }

// Run implements tea.ExecCommand. The command's exit code is no failure of ours: it has said what it found.
func (f Foreground) Run() error {
	if f.Holds == nil {
		f.Holds = func(bool) {}
	}
	f.Holds(true)
	err := f.Cmd.Run()
	f.Holds(false)
	if f.ProcessState == nil {
		return err // it did not begin
	}
	fmt.Fprint(f.Stdout, "\nenter goes back to top ")
	_, _ = bufio.NewReader(f.Stdin).ReadString('\n') // the end of the input goes back too
	return nil
}
