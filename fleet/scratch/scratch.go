// Package scratch makes the temporary folder of one run, and removes those of runs that were killed.
//
// # Problem
//
// A run keeps gigabytes in TMPDIR: rows, what DuckDB or Spark has no memory for, fetched files. A run that ends by
// SIGKILL removes nothing. Its process number tells little: another container that shares the folder has numbers of its
// own, and numbers come again.
//
// # Rule
//
// A run holds a lock of flock(2) on its folder; the kernel releases it when the process ends in any way. [Make] first
// removes the folders with the prefix that are this user's and of which it gets the lock. Whoever removes a folder
// holds its lock, and a run that makes one takes the lock and then looks whether the folder is still there, so that
// neither takes the other's.
//
// # Limits
//
// It follows no symbolic link: a folder's content is removed through the folder that is locked, and the name only where
// it is an empty folder by then. Where the file system of TMPDIR has no such locks (some of NFS) nothing is removed. A
// child that outlives a killed run does not hold the lock.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins the name of each folder.
const prefix = "unthrottle-fleet-"

// Dir is the folder of one run.
type Dir struct {
	// Name is its absolute name.
	Name string
	lock *os.File
}

// Make makes a folder in TMPDIR that only this user may enter. Removed is how many folders of runs that are gone it has
// removed first.
func Make() (d *Dir, removed int, err error) {
	temp, err := filepath.Abs(os.TempDir())
	if err == nil {
		removed = removeLeft(temp)
		d, err = locked(temp)
	}
	if err != nil {
		return nil, removed, fmt.Errorf("a temporary folder: %w; TMPDIR names another place", err)
	}
	return d, removed, nil
}

// locked makes a folder, and takes its lock before another run can.
func locked(temp string) (*Dir, error) {
	for {
		name, err := os.MkdirTemp(temp, prefix)
		if err != nil {
			return nil, err
		}
		lock, err := open(unix.AT_FDCWD, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run took it for one that is left
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(name))
		}
		switch err := flock(lock); {
		case errors.Is(err, unix.EWOULDBLOCK):
		case same(name, lock): // where there are no locks nobody gets one to remove it
			return &Dir{name, lock}, nil
		}
		_ = lock.Close()
	}
}

// Free is how many bytes this user may still write there.
func (d *Dir) Free() (int64, error) {
	var info unix.Statfs_t
	if err := unix.Fstatfs(int(d.lock.Fd()), &info); err != nil {
		return 0, fmt.Errorf("%s: free space: %w", d.Name, err)
	}
	return int64(info.Bavail) * info.Frsize, nil
}

// Remove removes the folder with all that is in it.
func (d *Dir) Remove() error { return errors.Join(os.RemoveAll(d.Name), d.lock.Close()) }

// removeLeft removes the folders of runs that are gone. What cannot be removed stays: the run is about something else.
func removeLeft(temp string) (removed int) {
	parent, err := open(unix.AT_FDCWD, temp)
	if err != nil {
		return 0
	}
	defer parent.Close()
	entries, err := parent.ReadDir(-1)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) && removeOne(parent, e.Name()) {
			removed++
		}
	}
	return removed
}

// removeOne removes a folder unless a run holds it or it is another user's.
func removeOne(parent *os.File, name string) bool {
	f, err := open(int(parent.Fd()), name)
	if err != nil {
		return false
	}
	defer f.Close()
	var info unix.Stat_t
	if unix.Fstat(int(f.Fd()), &info) != nil || int(info.Uid) != os.Geteuid() || flock(f) != nil {
		return false
	}
	inside, err := f.ReadDir(-1)
	if err != nil {
		return false
	}
	for _, e := range inside {
		// By the folder that is locked, whatever has its name by now.
		if os.RemoveAll(filepath.Join("/proc/self/fd", fmt.Sprint(f.Fd()), e.Name())) != nil {
			return false
		}
	}
	return unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR) == nil
}

// open opens a folder, and no link to one.
func open(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func flock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// same reports whether a name is still that of an open folder.
func same(name string, f *os.File) bool {
	there, err := os.Lstat(name)
	if err != nil {
		return false
	}
	is, err := f.Stat()
	return err == nil && os.SameFile(there, is)
}
