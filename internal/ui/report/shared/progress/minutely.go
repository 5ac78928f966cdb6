package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Drawer shows how far a long command is: a [Line] on a terminal, [Minutely] elsewhere.
type Drawer interface {
	// Draw shows what is done of total, and what goes on.
	Draw(done, total time.Duration, doing string)
	// Done ends it; the second call does nothing.
	Done()
}

// For chooses between the two. what names the command.
func For(w io.Writer, terminal, ascii bool, what string) Drawer {
	if terminal {
		return NewLine(w, ascii)
	}
	return NewMinutely(w, what)
}

// every is how often a plain output hears that a command goes on; everySlow is how often it hears of a step that is
// short on most hosts.
const (
	every     = time.Minute
	everySlow = 4 * time.Second
)

// What a line of Minutely has behind what goes on, and behind for how long.
const goesOn, soFar = " goes on, for ", " so far"

// IsMinutely tells whether a line is one of Minutely, for who reads a log in which results and messages are mixed.
func IsMinutely(line string) bool {
	_, behind, ok := strings.Cut(line, goesOn)
	return ok && strings.Contains(behind, soFar)
}

// Minutely says once a minute that a long command goes on: for a log, or for a command that knows no more. Until the
// first minute is over it says nothing.
type Minutely struct {
	w    io.Writer
	what string
	why  func() string // what else a line says; nil: nothing
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup

	mu    sync.Mutex
	doing string        // what goes on; "": not told
	left  time.Duration // about; 0: not known
}

// NewMinutely begins; Done ends it.
func NewMinutely(w io.Writer, what string) *Minutely { return newMinutely(w, what, every, nil) }

// NewSlow is for a step that is short on most hosts: it says every few seconds that the step goes on, and why it takes so
// long. why may be nil, and return "". Done ends it.
func NewSlow(w io.Writer, what string, why func() string) *Minutely {
	return newMinutely(w, what, everySlow, why)
}

func newMinutely(w io.Writer, what string, every time.Duration, why func() string) *Minutely {
	m := &Minutely{w: w, what: what, why: why, stop: make(chan struct{})}
	begun := time.Now()
	m.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
				m.say(time.Since(begun))
			}
		}
	})
	return m
}

// Draw notes what the next line says.
func (m *Minutely) Draw(done, total time.Duration, doing string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doing, m.left = doing, max(0, total-done)
}

// say writes a line. A line that cannot be written is no failure.
func (m *Minutely) say(elapsed time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := m.what + goesOn + text.Duration(elapsed.Round(time.Second)) + soFar
	if m.left > 0 {
		line += ", about " + text.Duration(m.left.Round(time.Second)) + " left"
	}
	if m.doing != "" {
		line += ": " + text.Sanitize(m.doing, maxTarget)
	}
	if m.why != nil {
		if why := m.why(); why != "" {
			line += "; " + why
		}
	}
	fmt.Fprintln(m.w, line)
}

// Done ends it; the second call does nothing.
func (m *Minutely) Done() {
	m.once.Do(func() { close(m.stop) })
	m.done.Wait()
}
