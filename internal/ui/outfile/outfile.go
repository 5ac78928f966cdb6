// Package outfile writes the files that users name for output: a page, a recording.
//
// # Problem
//
// A command that measures for seconds or minutes must not find out at its end that
// the file cannot be written, nor leave half of one where a whole one was.
//
// # Rule
//
// The file is begun before the measurement, beside the place where it goes, and
// renamed into that place when it is whole. Devices, pipes, folders and the kernel's
// own files are refused: a rename would replace them.
//
// # Example
//
// For "page.html" the unfinished file is ".page.html.PID-RANDOM.part" in the same folder.
//
// # Limits
//
// A kill leaves the unfinished file behind.
package outfile

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

// File becomes a file only when it is whole: what was there before stays until then.
type File struct {
	*os.File
	name string // as the user gave it
	path string // where it goes: behind symbolic links
}

// Create begins a file, with the permissions of the one that is there. The error says why it could not be written.
func Create(name string) (*File, error) {
	fail := func(err error) (*File, error) {
		return nil, fmt.Errorf("%s: cannot be written: %w", text.Sanitize(name, 0), err)
	}
	// /dev/stdout may lead to a file, which another program has open and would lose.
	if abs, err := filepath.Abs(name); err == nil && (cgroup.Below(abs, "/dev") && !cgroup.Below(abs, "/dev/shm") ||
		cgroup.Below(abs, "/proc")) {
		return fail(errors.New("it is the kernel's: give a file of your own"))
	}
	path := name
	if there, err := filepath.EvalSymlinks(name); err == nil {
		path = there
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fail(errors.New("it is a folder: give a file in it"))
	case err == nil && !info.Mode().IsRegular():
		return fail(errors.New("it is no file but a device, pipe or socket: give a file"))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	half := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%08x.part", filepath.Base(path), os.Getpid(), rand.Uint32()))
	mode := fs.FileMode(0o666) // the umask decides who may read it
	if info != nil {           // its owner has decided
		mode = info.Mode().Perm()
	}
	f, err := os.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(fmt.Errorf("there is no folder %s", text.Sanitize(filepath.Dir(name), 0)))
	}
	if err != nil {
		return fail(err)
	}
	begun := &File{f, name, path}
	if info == nil {
		return begun, nil
	}
	if err := f.Chmod(mode); err != nil { // the umask may have taken from it
		_ = begun.End(false)
		return fail(err)
	}
	return begun, nil
}

// End puts the file in its place, or removes it: half of one is of no use.
func (f *File) End(whole bool) error {
	err := f.Close()
	if err == nil && whole {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil || !whole {
		_ = os.Remove(f.Name())
	}
	if err != nil {
		return NotWritten(f.name, err)
	}
	return nil
}

// NotWritten says why a file was not, by the name that the user knows and not that of its unfinished half.
func NotWritten(name string, err error) error {
	if path := new(fs.PathError); errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: make room, or name a file elsewhere", err)
	}
	return fmt.Errorf("%s: not written: %w", text.Sanitize(name, 0), err)
}

// WriteAll writes the file whole, or removes it.
func (f *File) WriteAll(content func(io.Writer) error) error {
	err := content(f)
	if err != nil {
		err = NotWritten(f.name, err)
	}
	return errors.Join(err, f.End(err == nil))
}
