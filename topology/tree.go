package topology

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/utils/cpuset"
)

// maxFileBytes bounds the read of one file. The longest list of 8,192 CPUs, every second one, takes 20 KiB.
const maxFileBytes = 64 << 10

// maxEntries bounds the read of one folder.
const maxEntries = 4 * MaxCPUs

// tree reads small files below /sys.
type tree struct{ sys fs.FS }

// text returns a file's content, without white space around it and without the NUL that some drivers count as part of
// their text. ok is false if no such file exists, if a folder or device has its name, or if a CPU went offline
// meanwhile.
func (t *tree) text(name string) (text string, ok bool, err error) {
	// A pipe in such a tree would block an open.
	info, err := fs.Stat(t.sys, name)
	if missing(err) || err == nil && !info.Mode().IsRegular() {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	f, err := t.sys.Open(name)
	if missing(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if missing(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if len(b) > maxFileBytes {
		return "", false, fmt.Errorf("%s: longer than %d bytes: the kernel writes no such file", name, maxFileBytes)
	}
	return strings.TrimSpace(strings.TrimRight(string(b), "\x00 \t\r\n")), true, nil
}

// missing reports errors that mean an unknown value: no file, no folder on the way, a dangling link, no permission
// (some sandboxes), a removed device, a value that this machine does not have.
func missing(err error) bool {
	for _, gone := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP,
		syscall.ENODEV, syscall.ENXIO, syscall.EINVAL, syscall.EIO, syscall.ENODATA, syscall.EOPNOTSUPP} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// list returns the CPUs of a file in the kernel's list format.
func (t *tree) list(name string) (set cpuset.CPUSet, ok bool, err error) {
	return t.set(name, ParseList)
}

// set returns the CPUs of a file in the format that parse reads.
func (t *tree) set(name string, parse func(string) (cpuset.CPUSet, error)) (set cpuset.CPUSet, ok bool, err error) {
	text, ok, err := t.text(name)
	if err != nil || !ok {
		return cpuset.New(), false, err
	}
	set, err = parse(text)
	if err != nil {
		return cpuset.New(), false, fmt.Errorf("%s: %w", name, err)
	}
	return set, true, nil
}

// numbered returns the numbers N of the entries of dir that are named prefixN.
func (t *tree) numbered(dir, prefix string, limit int) (cpuset.CPUSet, error) {
	entries, err := t.entries(dir)
	if missing(err) {
		return cpuset.New(), nil
	}
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	var ids []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		// Others share the prefix: cpufreq, cpuidle.
		if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n < limit && strconv.Itoa(n) == digits {
			ids = append(ids, n)
		}
	}
	return cpuset.New(ids...), nil
}

// entries returns a folder's entries. It opens nothing else, because a pipe in such a tree would block.
func (t *tree) entries(dir string) ([]fs.DirEntry, error) {
	info, err := fs.Stat(t.sys, dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	f, err := t.sys.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	entries, err := d.ReadDir(maxEntries)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(entries) == maxEntries {
		return nil, fmt.Errorf("%s: %d entries or more: the kernel writes no such folder", dir, maxEntries)
	}
	return entries, nil
}
