package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/bench/demo"
)

// DemoProgress draws how far a demo is, on one line of a terminal that it
// writes over again and again. Its methods are called from one goroutine.
type DemoProgress struct {
	w     io.Writer
	ascii bool
	last  string
}

// NewDemoProgress draws on w, which must be a terminal.
func NewDemoProgress(w io.Writer, ascii bool) *DemoProgress {
	return &DemoProgress{w: w, ascii: ascii}
}

// progressBar is the width of the bar in characters.
const progressBar = 30

// Event draws an event; it is made for [demo.Options.Progress].
func (p *DemoProgress) Event(e demo.Event) {
	done := 0.0
	if e.Total > 0 {
		done = min(1, max(0, float64(e.Done)/float64(e.Total)))
	}
	left := max(0, e.Total-e.Done)
	line := fmt.Sprintf("%s %2.0f s  %s", pad(bars{p.ascii}.bar(done, progressBar), progressBar),
		math.Ceil(left.Round(100*time.Millisecond).Seconds()), pad(e.Doing, 22))
	if line == p.last {
		return
	}
	p.last = line
	fmt.Fprintf(p.w, "\r%s", line) // a progress line that cannot be written is no failure
}

// Done wipes the line.
func (p *DemoProgress) Done() {
	if p.last != "" {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.last = ""
	}
}
