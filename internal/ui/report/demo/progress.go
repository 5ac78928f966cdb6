package demo

import (
	"io"

	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// Progress draws how far a demo is. Its methods are called from one goroutine.
type Progress struct{ progress.Drawer }

// NewProgress writes to w: a bar on a terminal, a line a minute elsewhere.
func NewProgress(w io.Writer, terminal, ascii bool) Progress {
	return Progress{progress.For(w, terminal, ascii, "demo")}
}

// Event draws an event; it is made for [demo.Options.Progress].
func (p Progress) Event(e demo.Event) { p.Draw(e.Done, e.Total, e.Doing) }
