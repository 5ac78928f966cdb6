package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/diagnose"
	"github.com/unthrottle/unthrottle/report"
)

// wholeFile becomes a file only when it is whole: what was there before stays until then.
type wholeFile struct {
	*os.File
	name string
}

func newWholeFile(name string) (*wholeFile, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be written: %w", container.Sanitize(name, 0), err)
	}
	return &wholeFile{f, name}, nil
}

// end puts the file in its place, or removes it: half of one is of no use.
func (f *wholeFile) end(whole bool) error {
	err := errors.Join(f.Chmod(0o644), f.Close())
	if err == nil && whole {
		err = os.Rename(f.Name(), f.name)
	}
	if err != nil || !whole {
		_ = os.Remove(f.Name())
	}
	if err != nil {
		return fmt.Errorf("%s: not written: %w", container.Sanitize(f.name, 0), err)
	}
	return nil
}

func writeHTML(name string, e diagnose.Explanation) error {
	f, err := newWholeFile(name)
	if err != nil {
		return err
	}
	if err = report.ExplainHTML(f, e); err != nil {
		err = fmt.Errorf("%s: not written: %w", container.Sanitize(name, 0), err)
	}
	return errors.Join(err, f.end(err == nil))
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
	return &recordingProgress{name: container.Sanitize(name, 60), length: length, stop: make(chan struct{})}
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
			report.RecordingProgress(os.Stderr, p.name, time.Since(start), p.length)
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
