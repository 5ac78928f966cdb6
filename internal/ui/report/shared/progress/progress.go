// Package progress says how far a long command is: on a terminal on one line that it
// writes over again and again, elsewhere with a line a minute.
package progress

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/histogram"
)

// barWidth is the width of the bar, doingWidth that of the text behind it, in characters.
const (
	barWidth   = 30
	doingWidth = 22
)

// wipe takes the line away again.
const wipe = "\r\x1b[K"

// bar is the part of total that is done; a total of 0 is an empty bar.
func bar(done, total time.Duration, ascii bool) string {
	share := 0.0
	if total > 0 {
		share = min(1, max(0, done.Seconds()/total.Seconds()))
	}
	return text.Pad(histogram.Bars{ASCII: ascii}.Bar(share, barWidth), barWidth)
}

// left is how many seconds remain, rounded up.
func left(done, total time.Duration) float64 {
	return math.Ceil(max(0, (total - done).Round(100*time.Millisecond).Seconds()))
}

// Line is one line of a terminal. Its methods are called from one goroutine.
type Line struct {
	w     io.Writer
	ascii bool
	last  string
}

// NewLine draws on w, which must be a terminal.
func NewLine(w io.Writer, ascii bool) *Line { return &Line{w: w, ascii: ascii} }

// Draw shows what is done of total, and what goes on.
func (l *Line) Draw(done, total time.Duration, doing string) {
	line := fmt.Sprintf("%s %2.0f s  %s", bar(done, total, l.ascii), left(done, total), text.Pad(doing, doingWidth))
	if line == l.last {
		return
	}
	l.last = line
	fmt.Fprintf(l.w, "\r%s", line) // a progress line that cannot be written is no failure
}

// Done wipes the line; the second call does nothing.
func (l *Line) Done() {
	if l.last != "" {
		fmt.Fprint(l.w, wipe)
		l.last = ""
	}
}
