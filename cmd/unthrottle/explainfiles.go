package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
)

// sameFile tells two names of one file, which need not be there yet.
func sameFile(a, b string) bool {
	where := func(name string) string {
		if there, err := filepath.EvalSymlinks(name); err == nil {
			return there
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			folder = filepath.Dir(name)
		}
		return filepath.Join(folder, filepath.Base(name))
	}
	absA, errA := filepath.Abs(where(a))
	absB, errB := filepath.Abs(where(b))
	return errA == nil && errB == nil && absA == absB
}

// recordingProgress says on standard error that a recording goes on: a line that counts down on a terminal, one line
// elsewhere.
type recordingProgress struct {
	name   string
	length time.Duration
	stop   chan struct{}
	once   sync.Once
	ended  sync.WaitGroup
}

func newRecordingProgress(name string, length time.Duration) *recordingProgress {
	return &recordingProgress{name: text.Sanitize(name, 60), length: length, stop: make(chan struct{})}
}

// began is called when the recording has begun.
func (p *recordingProgress) began() {
	if !fullScreen(os.Stderr) {
		say("recording %s for %v", p.name, p.length)
		return
	}
	start := time.Now()
	p.ended.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			view.RecordingProgress(os.Stderr, p.name, time.Since(start), p.length)
			select {
			case <-p.stop:
				fmt.Fprint(os.Stderr, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	})
}

// done wipes the line; calling it again does nothing.
func (p *recordingProgress) done() {
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
}
