package demo

import (
	"io"

	"github.com/unthrottle/unthrottle/internal/bench/demo"
	"github.com/unthrottle/unthrottle/internal/ui/report/progress"
)

// Progress draws how far a demo is. Its methods are called from one goroutine.
type Progress struct{ *progress.Line }

// NewProgress draws on w, which must be a terminal.
func NewProgress(w io.Writer, ascii bool) Progress { return Progress{progress.NewLine(w, ascii)} }

// Event draws an event; it is made for [demo.Options.Progress].
func (p Progress) Event(e demo.Event) { p.Draw(e.Done, e.Total, e.Doing) }
