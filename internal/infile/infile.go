// Package infile reads files that a user or another program named or made.
//
// # Problem
//
// Such a path may be a pipe whose writer does not come, or comes slowly. A plain open or read then waits without end, and
// no signal ends it.
//
// # Rule
//
// Open waits for nothing. Read waits with poll(2) for the file and for its context, and reads only what is there. Root is
// for files whose place the program knows: it refuses what is not a regular file.
//
// # Limits
//
// A regular file on a file system that does not answer (a dead NFS server) still waits: the kernel calls it readable.
// Another process that reads the same pipe may take what poll saw.
//
// Sources: open(2) O_NONBLOCK, poll(2), fifo(7).
package infile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
)

// File is a file that is read until its context ends. It is for one reader at a time.
type File struct {
	ctx  context.Context
	file *os.File
	own  bool // Close closes it
	// ended is a pipe that has an event once ctx has ended; stop ends the watch of ctx.
	ended, end *os.File
	stop       func() bool
	closed     atomic.Bool
}

// Open opens a file for reading, and waits for no writer. Each read ends with ctx.
func Open(ctx context.Context, name string) (*File, error) {
	shown := text.Sanitize(name, 0)
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file%w", shown, hidden{err})
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: a folder: give a file", shown)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return with(ctx, file, true)
}

// hidden keeps an error for errors.Is without its words.
type hidden struct{ error }

func (hidden) Error() string { return "" }

func (h hidden) Unwrap() error { return h.error }

// with makes reads of an open file end with ctx.
func with(ctx context.Context, file *os.File, own bool) (*File, error) {
	f := &File{ctx: ctx, file: file, own: own}
	var err error
	if f.ended, f.end, err = os.Pipe(); err != nil {
		if own {
			file.Close()
		}
		return nil, err
	}
	f.stop = context.AfterFunc(ctx, func() { f.end.Close() })
	return f, nil
}

// Read reads what is there, and waits for it until the context ends, whose error it then returns.
func (f *File) Read(p []byte) (int, error) {
	if err := f.wait(); err != nil {
		return 0, err
	}
	return f.file.Read(p)
}

// wait waits until the file has something to read, or has ended.
func (f *File) wait() error {
	events := []unix.PollFd{{Fd: int32(f.file.Fd()), Events: unix.POLLIN}, {Fd: int32(f.ended.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(events, -1)
		switch {
		case f.ctx.Err() != nil:
			return f.ctx.Err()
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("%s: poll: %w", f.file.Name(), err)
		case events[0].Revents != 0:
			return nil
		}
	}
}

// Seek is that of the file.
func (f *File) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Stat is that of the file which was opened, not of one that may have its name by now.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Close closes the file.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return os.ErrClosed
	}
	if f.stop() {
		f.end.Close()
	}
	f.ended.Close()
	if !f.own {
		return nil
	}
	return f.file.Close()
}

// ReadAll reads a file, or stdin for the name "-", of at most most bytes. It reads one byte more of a longer one, so that
// the caller can tell. Without a stdin (nil), "-" is a file's name as any other.
func ReadAll(ctx context.Context, name string, stdin io.Reader, most int64) ([]byte, error) {
	in := stdin
	if name != "-" || stdin == nil {
		file, err := Open(ctx, name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	} else if file, ok := stdin.(*os.File); ok {
		f, err := with(ctx, file, false)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Sanitize(name, 0), err)
	}
	return data, nil
}

// Unchanged tells whether a file is the same and was not written. was is nil if it was not there.
func Unchanged(was, now os.FileInfo) bool {
	return was != nil && os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}
