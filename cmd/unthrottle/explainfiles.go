package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/diagnose"
	"github.com/unthrottle/unthrottle/report"
)

// wholeFile becomes a file only when it is whole: what was there before stays until then.
type wholeFile struct {
	*os.File
	name string // as the user gave it
	path string // where it goes: behind symbolic links
}

// newWholeFile begins a file. It must not stand on anything but a file: a rename would put it in the place of
// /dev/null as readily.
func newWholeFile(name string) (*wholeFile, error) {
	fail := func(err error) (*wholeFile, error) {
		return nil, fmt.Errorf("%s: cannot be written: %w", container.Sanitize(name, 0), err)
	}
	// /dev/stdout may lead to a file, which somebody has open and would lose.
	if abs, err := filepath.Abs(name); err == nil && (cgroup.Below(abs, "/dev") && !cgroup.Below(abs, "/dev/shm") || cgroup.Below(abs, "/proc")) {
		return fail(errors.New("it is the kernel's: give a file of your own"))
	}
	path := name
	if there, err := filepath.EvalSymlinks(name); err == nil {
		path = there
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return fail(errors.New("it is a folder: give a file in it"))
	case err == nil && !info.Mode().IsRegular():
		return fail(errors.New("it is no file but a device, pipe or socket: give a file"))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	half := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%08x.part", filepath.Base(path), os.Getpid(), rand.Uint32()))
	f, err := os.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666) // the umask decides who may read it
	if err != nil {
		return fail(err)
	}
	return &wholeFile{f, name, path}, nil
}

// end puts the file in its place, or removes it: half of one is of no use.
func (f *wholeFile) end(whole bool) error {
	err := f.Close()
	if err == nil && whole {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil || !whole {
		_ = os.Remove(f.Name())
	}
	if err != nil {
		return notWritten(f.name, err)
	}
	return nil
}

// notWritten says why a file was not, by the name that the user knows and not that of its unfinished half.
func notWritten(name string, err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: make room, or name a file elsewhere", err)
	}
	return fmt.Errorf("%s: not written: %w", container.Sanitize(name, 0), err)
}

// page begins the page for --html, nil where none is wanted.
func (f explainFlags) page() (*wholeFile, error) {
	if f.html == "" {
		return nil, nil
	}
	return newWholeFile(f.html)
}

// writeHTML writes the page of e and ends the file.
func (f *wholeFile) writeHTML(e diagnose.Explanation) error {
	err := report.ExplainHTML(f, e)
	if err != nil {
		err = notWritten(f.name, err)
	}
	return errors.Join(err, f.end(err == nil))
}

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
