package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
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
		return nil, fmt.Errorf("%s: cannot be written: %w", text.Sanitize(name, 0), err)
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
	return fmt.Errorf("%s: not written: %w", text.Sanitize(name, 0), err)
}

// newPage begins the page for --html, nil where none is wanted.
func newPage(name string) (*wholeFile, error) {
	if name == "" {
		return nil, nil
	}
	return newWholeFile(name)
}

// write writes a page whole, ends the file and says so; of nil, nothing is wanted.
func (f *wholeFile) write(page func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	err := page(f)
	if err != nil {
		err = notWritten(f.name, err)
	}
	if err = errors.Join(err, f.end(err == nil)); err == nil {
		say("the page is in %s", text.Sanitize(f.name, 0))
	}
	return err
}

// abandon removes a page that nothing was written to, if one was wanted.
func (f *wholeFile) abandon() {
	if f != nil {
		_ = f.end(false)
	}
}
