package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// maxTarget bounds the name of a container beside the bar, in runes.
const maxTarget = 40

// Recording says that a recording goes on: a line that counts down on a terminal,
// one line elsewhere.
type Recording struct {
	w        io.Writer
	terminal bool
	name     string
	length   time.Duration
	stop     chan struct{}
	once     sync.Once
	ended    sync.WaitGroup
}

// NewRecording is for a recording of a container, of that length; terminal says
// whether w can write over a line.
func NewRecording(w io.Writer, terminal bool, name string, length time.Duration) *Recording {
	return &Recording{w: w, terminal: terminal, name: text.Sanitize(name, 60), length: length, stop: make(chan struct{})}
}

// Began is called when the recording has begun.
func (p *Recording) Began() {
	if !p.terminal {
		fmt.Fprintf(p.w, "recording %s for %s\n", p.name, text.Duration(p.length))
		return
	}
	start := time.Now()
	p.ended.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			p.draw(time.Since(start))
			select {
			case <-p.stop:
				fmt.Fprint(p.w, wipe)
				return
			case <-tick.C:
			}
		}
	})
}

// draw writes over the line. A line that cannot be written is no failure.
func (p *Recording) draw(done time.Duration) {
	fmt.Fprintf(p.w, "\r%s %3.0f s  recording %s; Ctrl-C explains what there is\x1b[K",
		bar(done, p.length, true), left(done, p.length), text.Sanitize(p.name, maxTarget))
}

// Done wipes the line; the second call does nothing.
func (p *Recording) Done() {
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
}
