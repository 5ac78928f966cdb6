package report

import (
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/bench/capacity"
	"github.com/unthrottle/unthrottle/internal/bench/demo"
)

// Progress draws how far a bench is, on one line of a terminal.
type Progress struct{ line *DemoProgress }

// NewProgress draws on w, which must be a terminal.
func NewProgress(w io.Writer) *Progress { return &Progress{NewDemoProgress(w, false)} }

// Event draws an event; it is made for [bench.Options.Progress].
func (p *Progress) Event(e capacity.Event) {
	p.line.Event(demo.Event{Doing: e.Doing, Done: e.Done.Round(time.Second), Total: e.Total})
}

// Done wipes the line.
func (p *Progress) Done() { p.line.Done() }
