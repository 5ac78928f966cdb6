package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var _ FS = (*Host)(nil)

// checkFile accepts the name of a control file: one path part.
func checkFile(file string) bool {
	return file != "" && file != "." && file != ".." && !strings.ContainsAny(file, "/\x00")
}

// locate turns a path and file into an absolute name, or returns why it cannot.
func (h *Host) locate(op string, c Controller, path, file, value string) (string, error) {
	dir, err := h.dir(c, path)
	if err == nil && file != "" && !checkFile(file) {
		err = ErrBadPath
	}
	if err != nil {
		return "", NewError(h, c, Error{Op: op, Path: path, File: file, Value: value, Kind: err})
	}
	if file != "" {
		dir += "/" + file
	}
	return dir, nil
}

// Read implements FS.
func (h *Host) Read(c Controller, path, file string) (string, error) {
	name, err := h.locate(OpRead, c, path, file, "")
	if err != nil {
		return "", err
	}
	text, err := readBounded(name, maxFileBytes)
	if err != nil {
		return "", h.fail(OpRead, c, path, file, "", err)
	}
	return strings.TrimSuffix(text, "\n"), nil
}

// Write implements FS.
func (h *Host) Write(c Controller, path, file, value string) error {
	name, err := h.locate(OpWrite, c, path, file, value)
	if err != nil {
		return err
	}
	data, err := WriteBytes(file, value)
	if err != nil {
		return NewError(h, c, Error{Op: OpWrite, Path: path, File: file, Value: value, Kind: err})
	}
	if err := writeOnce(name, data); err != nil {
		return h.fail(OpWrite, c, path, file, value, err)
	}
	return nil
}

// WriteBytes returns the bytes that the kernel gets for a value. The kernel never sees a write of zero bytes: an empty
// value becomes a newline where that clears a list, and is refused elsewhere.
func WriteBytes(file, value string) (string, error) {
	if value != "" {
		return value, nil
	}
	if clearsByNewline(file) {
		return "\n", nil
	}
	return "", ErrEmptyValue
}

// writeOnce makes exactly one write(2), because the kernel takes a control file's value whole or not at all.
func writeOnce(name, value string) error {
	fd, err := retry(func() (int, error) { return unix.Open(name, unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0) })
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := retry(func() (int, error) { return unix.Write(fd, []byte(value)) })
	if err == nil && n != len(value) {
		err = io.ErrShortWrite
	}
	return err
}

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Make implements FS.
func (h *Host) Make(c Controller, path string) error {
	dir, err := h.locate(OpMake, c, path, "", "")
	if err != nil {
		return err
	}
	if err := unix.Mkdir(dir, 0o755); err != nil {
		return h.fail(OpMake, c, path, "", "", err)
	}
	return nil
}

// Remove implements FS.
func (h *Host) Remove(c Controller, path string) error {
	dir, err := h.locate(OpRemove, c, path, "", "")
	if err != nil {
		return err
	}
	if err := unix.Rmdir(dir); err != nil {
		return h.fail(OpRemove, c, path, "", "", err)
	}
	return nil
}

// Children implements FS.
func (h *Host) Children(c Controller, path string) ([]string, error) {
	dir, err := h.locate(OpChildren, c, path, "", "")
	if err != nil {
		return nil, err
	}
	// Most cgroups are leaves. A directory's link count shows it for one call: 2 and one more per child
	// (kernfs_refresh_inode). File systems that do not count have 1.
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, h.fail(OpChildren, c, path, "", "", err)
	}
	if st.Nlink == 2 {
		return nil, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, h.fail(OpChildren, c, path, "", "", err)
	}
	defer f.Close()
	var all []string
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, Join(path, e.Name()))
			}
		}
		if len(all) > maxChildren {
			err = ErrTooMuch
		}
		switch {
		case err == io.EOF:
			slices.Sort(all)
			return all, nil
		case err != nil:
			return nil, h.fail(OpChildren, c, path, "", "", err)
		}
	}
}

// Procs implements FS.
func (h *Host) Procs(c Controller, path string) ([]int, error) {
	return h.pids(c, path, FileProcs)
}

// Threads implements FS.
func (h *Host) Threads(c Controller, path string) ([]int, error) {
	v, _ := h.Version(c)
	return h.pids(c, path, ThreadsFile(v))
}

func (h *Host) pids(c Controller, path, file string) ([]int, error) {
	name, err := h.locate(OpRead, c, path, file, "")
	if err != nil {
		return nil, err
	}
	// The longest line is "4194304\n".
	text, err := readBounded(name, MaxPids*8)
	if err != nil {
		return nil, h.fail(OpRead, c, path, file, "", err)
	}
	pids, err := ParsePids(text)
	if err != nil {
		return nil, h.fail(OpRead, c, path, file, "", err)
	}
	return pids, nil
}

// ParsePids reads cgroup.procs or tasks: one number per line, 0 for a process of another PID namespace.
func ParsePids(text string) ([]int, error) {
	pids := make([]int, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		pid, err := strconv.ParseUint(line, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: %.40q is not a process number", ErrFormat, line)
		}
		if len(pids) == MaxPids {
			return nil, ErrTooMuch
		}
		pids = append(pids, int(pid))
	}
	return pids, nil
}

// Attach implements FS.
func (h *Host) Attach(c Controller, path string, pid int) error {
	value := strconv.Itoa(pid)
	if pid <= 0 {
		return NewError(h, c, Error{Op: OpAttach, Path: path, Value: value, Kind: ErrBadPID})
	}
	name, err := h.locate(OpAttach, c, path, FileProcs, value)
	if err != nil {
		return err
	}
	if err := writeOnce(name, value); err != nil {
		return h.fail(OpAttach, c, path, "", value, err)
	}
	return nil
}

// ID implements FS.
func (h *Host) ID(c Controller, path string) (uint64, error) {
	dir, err := h.locate(OpID, c, path, "", "")
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return 0, h.fail(OpID, c, path, "", "", err)
	}
	return st.Ino, nil
}

// Exists reports whether a cgroup exists. Any error other than a clear no counts as yes.
func Exists(fsys FS, c Controller, path string) bool {
	_, err := fsys.ID(c, path)
	return !errors.Is(err, ErrNoCgroup) && !errors.Is(err, ErrOutside) && !errors.Is(err, ErrBadPath) &&
		!errors.Is(err, ErrNoController)
}

// fail makes the *Error of a failed system call.
func (h *Host) fail(op string, c Controller, path, file, value string, cause error) error {
	e := Error{Op: op, Path: path, File: file, Value: value}
	var errno unix.Errno
	switch {
	case errors.As(cause, &errno):
		e.Errno = errno
	case errors.Is(cause, fs.ErrNotExist):
		e.Errno = unix.ENOENT
	default:
		e.Errno = cause
	}
	switch errno {
	case unix.ENODEV:
		e.Kind = ErrNoCgroup
	case unix.ENOENT, unix.ENOTDIR:
		e.Kind = h.missing(c, path, file, op)
	}
	return NewError(h, c, e)
}

// missing distinguishes a removed cgroup from a file that this cgroup does not have.
func (h *Host) missing(c Controller, path, file, op string) error {
	if op == OpMake {
		path = Parent(path)
	}
	dir, err := h.dir(c, path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ErrNoCgroup
	}
	if file != "" {
		return ErrNoFile
	}
	return ErrNoCgroup
}
