package infile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// root is a folder whose files other programs make.
type root struct {
	dir string
	fs.FS
}

// Root is os.DirFS for a folder whose files other programs make: it refuses to open what is neither a regular file nor a
// folder, and so never waits for the writer of a pipe.
func Root(dir string) fs.FS { return root{dir, os.DirFS(dir)} }

// Open implements fs.FS.
func (r root) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := os.OpenFile(filepath.Join(r.dir, name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: neither a file nor a folder", fs.ErrInvalid)}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Stat implements fs.StatFS.
func (r root) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// Lstat implements fs.ReadLinkFS.
func (r root) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(r.FS, name) }

// ReadLink implements fs.ReadLinkFS.
func (r root) ReadLink(name string) (string, error) { return fs.ReadLink(r.FS, name) }
