package bench

import (
	"io"
	"time"

	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

// Progress draws how far a bench of a service is. Its methods are called from one goroutine.
type Progress struct{ progress.Drawer }

// NewProgress writes to w: a bar on a terminal, a line a minute elsewhere.
func NewProgress(w io.Writer, terminal, ascii bool) Progress {
	return Progress{progress.For(w, terminal, ascii, "bench service")}
}

// Event draws an event; it is made for [capacity.Options.Progress].
func (p Progress) Event(e capacity.Event) { p.Draw(e.Done.Round(time.Second), e.Total, e.Doing) }
