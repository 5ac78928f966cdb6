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

// Recording says that a recording goes on: a line that counts down on a terminal, one line elsewhere. It also says when
// the recording begins late, or its explanation takes long.
type Recording struct {
	w      io.Writer
	how    How
	name   string
	length time.Duration
	why    func() string
	slow   *Minutely // until it begins
	stop   chan struct{}
	once   sync.Once
	ended  sync.WaitGroup
}

// How a recording is shown.
type How int

// The ways: a line that is written over, one line when it begins, or only what is late.
const (
	Terminal How = iota
	Plain
	OnlyLate
)

// NewRecording is for a recording of a container, of that length. why says why a step takes long: see NewSlow.
func NewRecording(w io.Writer, how How, name string, length time.Duration, why func() string) *Recording {
	p := &Recording{w: w, how: how, name: text.Sanitize(name, 60), length: length, why: why, stop: make(chan struct{})}
	p.slow = NewSlow(w, "preparing to record "+p.name, why)
	return p
}

// Doing notes the step that goes on before the recording begins.
func (p *Recording) Doing(what string) { p.slow.Draw(0, 0, what) }

// Began is called when the recording has begun.
func (p *Recording) Began() {
	p.slow.Done()
	if p.how == Plain {
		fmt.Fprintf(p.w, "recording %s for %s\n", p.name, text.Duration(p.length))
	}
	start := time.Now()
	p.ended.Go(func() {
		if !p.count(start) {
			return
		}
		slow := NewSlow(p.w, "explaining "+p.name, p.why)
		<-p.stop
		slow.Done()
	})
}

// count counts down until the length is over; false: Done was called before.
func (p *Recording) count(start time.Time) bool {
	over := time.NewTimer(p.length)
	defer over.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	if p.how == Terminal {
		defer fmt.Fprint(p.w, wipe)
	} else {
		tick.Stop()
	}
	for {
		if p.how == Terminal {
			p.draw(time.Since(start))
		}
		select {
		case <-p.stop:
			return false
		case <-over.C:
			return true
		case <-tick.C:
		}
	}
}

// draw writes over the line. A line that cannot be written is no failure.
func (p *Recording) draw(done time.Duration) {
	fmt.Fprintf(p.w, "\r%s %3.0f s  recording %s; Ctrl-C explains what there is\x1b[K",
		bar(done, p.length, true), left(done, p.length), text.Sanitize(p.name, maxTarget))
}

// Done wipes the line; the second call does nothing.
func (p *Recording) Done() {
	p.once.Do(func() { close(p.stop) })
	p.slow.Done()
	p.ended.Wait()
}
