package top

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
)

func of[T any](v T) *T { return &v }

func row(name string, stopped, used float64) containerRow {
	return containerRow{
		Path: "/pods/" + name, Name: name, LimitCPUs: of(2.0), UsedCPUs: of(used), MostWidth: of(int(used * 3)), Wanted: of(used * 2),
		StoppedLow: of(stopped), StoppedHigh: of(stopped), Cause: diagnose.Burst,
		Timeline: []timelineCell{{Width: 0}, {Width: 1}, {Width: 2, Stopped: 0.2}, {Width: 0.1, Stopped: 0.9}, {Width: -1}},
	}
}

func start(rows ...containerRow) Model {
	m := Model{ASCII: true, ExplainFor: 10 * time.Second}
	m = send(m, tea.WindowSizeMsg{Width: 120, Height: 12})
	return send(m, Frame{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Rows: rows})
}

func send(m Model, msgs ...tea.Msg) Model {
	for _, msg := range msgs {
		next, _ := m.Update(msg)
		m = next.(Model)
	}
	return m
}

func press(m Model, keys ...string) Model {
	for _, k := range keys {
		m = send(m, keyMsg(k))
	}
	return m
}

func keyMsg(k string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "end": tea.KeyEnd, "home": tea.KeyHome, "backspace": tea.KeyBackspace}
	if code, ok := special[k]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	r, _ := utf8.DecodeRuneInString(k)
	return tea.KeyPressMsg{Code: r, Text: k}
}

// names are the containers on the screen, from the top.
func names(m Model) []string {
	var got []string
	for _, l := range strings.Split(m.Screen(), "\n") {
		if f := strings.Fields(strings.TrimPrefix(l, ">")); len(f) > 3 && (f[2] == "ms/s" || f[1] == missing) {
			got = append(got, f[0])
		}
	}
	return got
}

func TestWorstFirst(t *testing.T) {
	m := start(row("calm", 0, 0.5), row("worst", 0.4, 1), row("bad", 0.1, 1.9))
	if got := names(m); fmt.Sprint(got) != "[worst bad calm]" {
		t.Errorf("%v\n%s", got, m.Screen())
	}
	for key, want := range map[string]string{"u": "[bad worst calm]", "n": "[bad calm worst]", "s": "[worst bad calm]"} {
		if got := names(press(m, key)); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", key, got, want)
		}
	}
	if got := names(press(m, "r")); fmt.Sprint(got) != "[calm bad worst]" {
		t.Errorf("reversed: %v", got)
	}
}

func TestRowSaysWhatIsKnownAndWhatIsNot(t *testing.T) {
	unknown := containerRow{Path: "/x", Name: "dark"}
	free := row("free", 0, 1)
	free.LimitCPUs, free.Unlimited = nil, true
	screen := start(row("app", 0.25, 1.5), unknown, free).Screen()
	for _, want := range []string{"app", "250 ms/s", "1.50", "burst", " .59x", "none"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	for _, l := range strings.Split(screen, "\n") {
		if strings.Contains(l, "dark") && strings.ContainsAny(l, "0123456789") {
			t.Errorf("what was not measured has a figure: %s", l)
		}
	}
}

// Who presses p before the first look still gets it: nothing looked at is not "0 containers".
func TestPausedBeforeTheFirstFrame(t *testing.T) {
	m := press(start(), "p")
	m.frame = Frame{}
	m = send(m, Frame{At: time.Now(), Rows: []containerRow{row("a", 0.3, 1)}})
	if len(m.rows()) != 1 {
		t.Errorf("paused on %d rows", len(m.rows()))
	}
	if m = send(m, Frame{At: time.Now(), Rows: []containerRow{row("a", 0.3, 1), row("b", 0.2, 1)}}); len(m.rows()) != 1 {
		t.Errorf("not paused: %d rows", len(m.rows()))
	}
}

// Who chose nothing sees the worst, whatever was first when the screen began.
func TestSelectionBeginsWithTheWorst(t *testing.T) {
	m := start(row("a", 0.3, 1), row("b", 0.2, 1))
	turned := Frame{At: time.Now(), Rows: []containerRow{row("a", 0.1, 1), row("b", 0.9, 1)}}
	if m = send(m, turned); m.selected != "/pods/b" {
		t.Errorf("nothing was chosen, and %q is selected", m.selected)
	}
	m = send(press(m, "down", "g"), Frame{At: time.Now(), Rows: []containerRow{row("a", 0.5, 1), row("b", 0.2, 1)}})
	if m.selected != "/pods/a" {
		t.Errorf("back at the first row, and %q is selected", m.selected)
	}
}

func TestSelectionStaysWithItsContainer(t *testing.T) {
	m := press(start(row("a", 0.3, 1), row("b", 0.2, 1), row("c", 0.1, 1)), "down")
	if m.selected != "/pods/b" {
		t.Fatalf("selected %q", m.selected)
	}
	m = send(m, Frame{At: time.Now(), Rows: []containerRow{row("a", 0.1, 1), row("b", 0.9, 1), row("c", 0.2, 1)}})
	if m.selected != "/pods/b" || !strings.Contains(m.Screen(), "> b") {
		t.Errorf("selected %q\n%s", m.selected, m.Screen())
	}
	m = send(m, Frame{At: time.Now(), Rows: []containerRow{row("a", 0.1, 1)}})
	if m.selected != "/pods/a" {
		t.Errorf("the container is gone and %q is selected", m.selected)
	}
}

func TestFilter(t *testing.T) {
	m := press(start(row("web", 0.3, 1), row("batch", 0.2, 1), row("web2", 0.1, 1)), "/", "W", "e", "x", "backspace", "b", "enter")
	if got := names(m); fmt.Sprint(got) != "[web web2]" {
		t.Errorf("%v", got)
	}
	if m = press(m, "q"); m.typing {
		t.Error("still typing")
	}
	if got := names(press(m, "esc")); len(got) != 3 {
		t.Errorf("after esc: %v", got)
	}
	if m = press(m, "/", "z", "z", "z"); !strings.Contains(m.Screen(), "no container fits") {
		t.Error(m.Screen())
	}
}

func TestPauseHoldsTheScreen(t *testing.T) {
	m := press(start(row("a", 0.3, 1)), "p")
	m = send(m, Frame{At: time.Now(), Rows: []containerRow{row("b", 0.3, 1)}})
	if got := names(m); fmt.Sprint(got) != "[a]" || !strings.Contains(m.Screen(), "PAUSED") {
		t.Errorf("%v\n%s", got, m.Screen())
	}
}

func TestExplanationOpensAndCloses(t *testing.T) {
	m := start(row("a", 0.3, 1), row("b", 0.2, 1))
	var asked []string
	m.Explain = func(path string) tea.Cmd { asked = append(asked, path); return nil }
	m = press(m, "down", "enter")
	begin := time.Now()
	m = send(m, tickMsg(begin), tickMsg(begin.Add(5*time.Second)))
	if fmt.Sprint(asked) != "[/pods/b]" || !strings.Contains(m.Screen(), "###############...............") ||
		!strings.Contains(m.Screen(), "5 of 10 s") {
		t.Fatalf("asked %v\n%s", asked, m.Screen())
	}
	// The answer to a question that was left is not shown.
	m = send(m, Explained{Path: "/pods/a", Text: saying("other")})
	if strings.Contains(m.Screen(), "other") {
		t.Error("shows another container's explanation")
	}
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	m = send(m, Explained{Path: "/pods/b", Text: saying(text.String())})
	if s := m.Screen(); !strings.Contains(s, "line 0") || strings.Contains(s, "line 20") {
		t.Errorf("\n%s", s)
	}
	if s := press(m, "end").Screen(); !strings.Contains(s, "line 49") {
		t.Errorf("\n%s", s)
	}
	if got := names(press(m, "esc")); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if s := send(press(m, "r"), Explained{Path: "/pods/b", Err: errors.New("it is gone")}).Screen(); !strings.Contains(s, "it is gone") {
		t.Errorf("\n%s", s)
	}
}

func TestHelpListsTheKeys(t *testing.T) {
	m := send(start(row("a", 0, 1)), tea.WindowSizeMsg{Width: 100, Height: 30})
	m = press(m, "?")
	if s := m.Screen(); !strings.Contains(s, "enter    record") {
		t.Errorf("\n%s", s)
	}
	if got := names(press(m, "x")); len(got) != 1 {
		t.Error("any key should go back")
	}
}

func TestStrangersNamesAreText(t *testing.T) {
	evil := row("x", 0.5, 1)
	evil.Name = "a\x1b[2Jb\n\u202e" + strings.Repeat("w", 5000)
	m := start(evil)
	m.Color = true
	screen := m.Screen()
	if strings.Contains(screen, "\x1b[2J") || strings.Contains(screen, "\u202e") {
		t.Errorf("%q", screen)
	}
	if n := len(strings.Split(screen, "\n")); n != 12 {
		t.Errorf("%d lines on 12 rows", n)
	}
}

// A narrow terminal shows the most telling columns, whole.
func TestNarrowScreen(t *testing.T) {
	for columns, shown := range map[int][]string{30: {"STOPPED"}, 40: {"STOPPED", "CAUSE"},
		47: {"STOPPED", "USED", "CAUSE"}, 80: {"STOPPED", "LIMIT", "USED", "MOST", "WANTED", "CAUSE"}} {
		m := send(start(row("cart", 0.25, 1)), tea.WindowSizeMsg{Width: columns, Height: 12})
		lines := strings.Split(m.Screen(), "\n")
		if got := strings.Fields(lines[2])[1:]; strings.Join(got[:len(shown)], " ") != strings.Join(shown, " ") {
			t.Errorf("%d columns: %q", columns, lines[2])
		}
		for _, want := range []string{"cart", "250 ms/s", "burst"} {
			if want == "burst" && !slices.Contains(shown, "CAUSE") {
				continue
			}
			if !strings.Contains(lines[3], want) {
				t.Errorf("%d columns: no %s in %q", columns, want, lines[3])
			}
		}
	}
}

// Whatever is pressed and whatever size the terminal has: no panic, and the screen fits.
func TestScreenAlwaysFits(t *testing.T) {
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "esc", "/", "a", "q", "?", "p", "s", "u",
		"w", "n", "c", "r", "y", "f", "backspace"}
	rapid.Check(t, func(t *rapid.T) {
		m := Model{ASCII: rapid.Bool().Draw(t, "ascii"), Color: rapid.Bool().Draw(t, "color")}
		m.Explain = func(string) tea.Cmd { return nil }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				m = send(m, tea.WindowSizeMsg{Width: rapid.IntRange(0, 200).Draw(t, "w"), Height: rapid.IntRange(0, 60).Draw(t, "h")})
			case 1:
				var rows []containerRow
				for i := range rapid.IntRange(0, 80).Draw(t, "rows") {
					rows = append(rows, row(fmt.Sprint("c", i), rapid.Float64Range(0, 1).Draw(t, "stopped"), 1))
				}
				m = send(m, Frame{At: time.Now(), Rows: rows})
			case 2:
				m = send(m, Explained{Path: m.selected,
					Text: saying(strings.Repeat("a text of several words\n", rapid.IntRange(0, 100).Draw(t, "lines")))})
			default:
				m = press(m, rapid.SampledFrom(keys).Draw(t, "key"))
			}
			lines := strings.Split(m.Screen(), "\n")
			if len(lines) > max(1, m.height) {
				t.Fatalf("%d lines on %d rows", len(lines), m.height)
			}
			for _, l := range lines {
				if ansi.StringWidth(l) > m.width {
					t.Fatalf("a line of %d cells on %d columns", ansi.StringWidth(l), m.width)
				}
			}
		}
	})
}

// saying is an explanation that is the same at any width.
func saying(s string) func(int) string { return func(int) string { return s } }

// An explanation is laid out anew when the window changes, and no word of it is lost.
func TestExplanationFollowsTheWindow(t *testing.T) {
	m := start(row("a", 0.3, 1))
	m.Explain = func(string) tea.Cmd { return nil }
	m = send(press(m, "enter"), Explained{Path: "/pods/a", Text: func(width int) string {
		return fmt.Sprintf("for %d columns: a verdict of many words that do not fit", width)
	}})
	for _, width := range []int{40, 100} {
		s := send(m, tea.WindowSizeMsg{Width: width, Height: 10}).Screen()
		if got := strings.Join(strings.Fields(s), " "); !strings.Contains(got,
			fmt.Sprintf("for %d columns: a verdict of many words that do not fit", width)) {
			t.Errorf("%d columns:\n%s", width, s)
		}
	}
}

// At 40 columns and 10 rows there is the worst container, its cause, and how to leave.
func TestSmallWindow(t *testing.T) {
	m := send(start(row("cart-with-a-long-name", 0.25, 1), row("b", 0, 1)), tea.WindowSizeMsg{Width: 40, Height: 10})
	s := m.Screen()
	for _, want := range []string{"2 containers, 1 stopped", "cart-with", "250 ms/s", "burst", "q quit", "? help", "enter explain"} {
		if !strings.Contains(s, want) {
			t.Errorf("no %q in\n%s", want, s)
		}
	}
	help := press(m, "?")
	if s := help.Screen(); !strings.Contains(s, "enter") || strings.Contains(s, "idle.") {
		t.Errorf("\n%s", s)
	}
	end := press(help, "end")
	if s := end.Screen(); !strings.Contains(s, "Any other key goes back.") {
		t.Errorf("\n%s", s)
	}
	if s := send(end, tea.WindowSizeMsg{Width: 200, Height: 60}).Screen(); !strings.Contains(s, "Any other key goes back.") {
		t.Errorf("in a window that has grown:\n%s", s)
	}
	grown := send(end, tea.WindowSizeMsg{Width: 40, Height: 12})
	if s := press(grown, "k").Screen(); s == grown.Screen() {
		t.Errorf("the first key in it does nothing:\n%s", s)
	}
}

func TestActions(t *testing.T) {
	m := start(row("a", 0.3, 1), row("b c", 0.2, 1))
	var asked []string
	m.Fix = func(path string) tea.Cmd { asked = append(asked, path); return nil }
	m = press(m, "down", "f")
	if fmt.Sprint(asked) != "[/pods/b c]" {
		t.Errorf("asked to fix %v", asked)
	}
	next, cmd := m.Update(keyMsg("y"))
	if s := next.(Model).Screen(); cmd == nil || !strings.Contains(s, "copied: sudo unthrottle fix '/pods/b c'") {
		t.Errorf("\n%s", s)
	}
	if s := press(next.(Model), "up").Screen(); strings.Contains(s, "copied") {
		t.Errorf("the next key leaves it there\n%s", s)
	}
	if s := send(m, Fixed{Err: errors.New("no such program")}).Screen(); !strings.Contains(s, "no such program") {
		t.Errorf("\n%s", s)
	}
	if s := press(start(), "y", "f").Screen(); strings.Contains(s, "copied") {
		t.Errorf("\n%s", s)
	}
}

// The command to type next explains the container that the user chose, else the most stopped one.
func TestWhatFollows(t *testing.T) {
	m := start(row("a", 0.3, 1), row("b", 0.2, 1), row("c", 0, 1))
	for want, m := range map[string]Model{
		"sudo unthrottle explain /pods/a": m, "sudo unthrottle explain /pods/b": press(m, "down"), "": start(row("c", 0, 1)),
	} {
		if got := m.follows(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	chosen := press(m, "down", "down") // it is not stopped
	if got := chosen.follows(); got != "sudo unthrottle explain /pods/a" {
		t.Errorf("%q", got)
	}
}

// A command in front reads one line when it has ended, whatever its exit code.
func TestForeground(t *testing.T) {
	var out strings.Builder
	var held []bool
	f := Foreground{Cmd: exec.Command("false"), Holds: func(holds bool) { held = append(held, holds) }}
	f.SetStdin(strings.NewReader("\n"))
	f.SetStdout(&out)
	f.SetStderr(&out)
	if err := f.Run(); err != nil || !strings.Contains(out.String(), "enter goes back") {
		t.Errorf("%v, %q", err, out.String())
	}
	if fmt.Sprint(held) != "[true false]" {
		t.Errorf("who has the terminal: %v", held)
	}
	if err := (Foreground{Cmd: exec.Command("/nonexistent")}).Run(); err == nil {
		t.Error("a program that is not there ran")
	}
}
