package cpio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File types of st_mode (inode(7)).
const (
	typeDir     = 0o040000
	typeChar    = 0o020000
	typeRegular = 0o100000
	typeLink    = 0o120000
)

// Writer writes one archive. Its methods make missing parent folders, mode 0755. A name is a path in the guest; a
// leading slash is ignored.
type Writer struct {
	out     *bufio.Writer
	written int64
	inode   uint32
	names   map[string]bool
}

// NewWriter starts an archive on w. Close ends it.
func NewWriter(w io.Writer) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, 1<<20), names: map[string]bool{}}
}

// Dir adds a folder unless it exists already.
func (w *Writer) Dir(name string) error {
	name, err := clean(name)
	if err != nil || name == "" || w.names[name] {
		return err
	}
	return w.entry(name, typeDir|0o755, 0, 0, 0, nil)
}

// File adds a file that holds data.
func (w *Writer) File(name string, mode fs.FileMode, data []byte) error {
	return w.entry(name, typeRegular|uint32(mode.Perm()), 0, 0, int64(len(data)), strings.NewReader(string(data)))
}

// Link adds a symbolic link.
func (w *Writer) Link(name, target string) error {
	return w.entry(name, typeLink|0o777, 0, 0, int64(len(target)), strings.NewReader(target))
}

// CharDevice adds a character device.
func (w *Writer) CharDevice(name string, mode fs.FileMode, major, minor uint32) error {
	return w.entry(name, typeChar|uint32(mode.Perm()), major, minor, 0, nil)
}

// HostFile adds a file of this machine, with its permissions; a link is
// followed.
func (w *Writer) HostFile(name, source string) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a file", source)
	}
	return w.entry(name, typeRegular|uint32(info.Mode().Perm()), 0, 0, info.Size(), f)
}

// HostTree adds a folder of this machine with its content. Links stay links. Any entry other than a folder, file or
// link is an error.
func (w *Writer) HostTree(name, source string) error {
	return filepath.WalkDir(source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return err
		}
		to := path.Join(name, filepath.ToSlash(below))
		switch {
		case d.IsDir():
			return w.Dir(to)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			return w.Link(to, target)
		default:
			return w.HostFile(to, file)
		}
	})
}

// Close writes the trailer. It does not close the writer below.
func (w *Writer) Close() error {
	if err := w.raw("TRAILER!!!", 0, 0, 0, 0, nil); err != nil {
		return err
	}
	return w.out.Flush()
}

// clean returns the name in the archive's form: relative, "" for the root.
func clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q: a name must not contain NUL", name)
	}
	return strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

func (w *Writer) entry(name string, mode, major, minor uint32, size int64, data io.Reader) error {
	name, err := clean(name)
	if err != nil {
		return err
	}
	if name == "" {
		return errors.New("an entry needs a name")
	}
	if w.names[name] {
		return fmt.Errorf("%s: twice in the archive", name)
	}
	if err := w.Dir(path.Dir("/" + name)); err != nil {
		return err
	}
	w.names[name] = true
	return w.raw(name, mode, major, minor, size, data)
}

func (w *Writer) raw(name string, mode, major, minor uint32, size int64, data io.Reader) error {
	if size < 0 || size > math.MaxUint32 {
		return fmt.Errorf("%s: %d bytes: the format ends at 4 GiB", name, size)
	}
	w.inode++
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		w.inode, mode, 0, 0, 1, 0, size, 0, 0, major, minor, len(name)+1, 0)
	if err := w.text(header + name + "\x00"); err != nil {
		return err
	}
	if size > 0 {
		n, err := io.CopyN(w.out, data, size)
		w.written += n
		if err != nil {
			return fmt.Errorf("%s: after %d of %d bytes: %w", name, n, size, err)
		}
	}
	return w.pad()
}

func (w *Writer) text(s string) error {
	n, err := w.out.WriteString(s)
	w.written += int64(n)
	if err != nil {
		return err
	}
	return w.pad()
}

func (w *Writer) pad() error {
	for w.written%4 != 0 {
		if err := w.out.WriteByte(0); err != nil {
			return err
		}
		w.written++
	}
	return nil
}
