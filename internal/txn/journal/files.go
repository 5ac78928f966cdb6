package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NotRegular says that one of our files is no regular file.
type NotRegular struct {
	File string
	Mode fs.FileMode
}

// Error names the way out.
func (e *NotRegular) Error() string {
	return fmt.Sprintf("%s is no regular file (%v) and is not opened: remove it, or use another --state-dir", e.File, e.Mode.Type())
}

// openRegular opens a file without following a link and without waiting, as opening a named pipe would.
func openRegular(name string, flags int) (*os.File, error) {
	// Before as well as after opening: to open a device may already do something.
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &NotRegular{File: name, Mode: info.Mode()}
	}
	f, err := os.OpenFile(name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, wayOut(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &NotRegular{File: name, Mode: info.Mode()}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// named is an error if an open file has no name any more: what is written to it goes when it is closed.
func named(f *os.File) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return err
	}
	if s.Nlink == 0 {
		return fmt.Errorf("%s was removed or replaced by another program while it was open: run the command again", f.Name())
	}
	return nil
}

// wayOut adds to an error of the state directory what can be done about it.
func wayOut(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: run as root, or name a directory of your own with --state-dir", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: name a directory that can be written to with --state-dir, and run as root where it needs that", err)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: make room, or name a directory elsewhere with --state-dir (and run as root where it needs that)", err)
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w: name another directory with --state-dir", err)
	}
	return err
}
