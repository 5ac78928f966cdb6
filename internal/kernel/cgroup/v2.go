package cgroup

import (
	"errors"
)

// enabledControllers returns the controllers that a v2 cgroup has (cgroup.controllers).
func enabledControllers(fsys FS, path string) ([]Controller, error) {
	return readControllers(fsys, path, FileControllers)
}

// SubtreeControl returns the controllers that a v2 cgroup enables for its children (cgroup.subtree_control).
func SubtreeControl(fsys FS, path string) ([]Controller, error) {
	return readControllers(fsys, path, FileSubtreeControl)
}

func readControllers(fsys FS, path, file string) ([]Controller, error) {
	c, ok := unifiedController(fsys)
	if !ok {
		return nil, NewError(fsys, CPU, Error{Op: OpRead, Path: path, File: file, Kind: ErrNoController})
	}
	text, err := fsys.Read(c, path, file)
	if err != nil {
		return nil, err
	}
	return parseControllers(text), nil
}

// unifiedController returns any controller of ours that is on v2: they all share its one tree.
func unifiedController(fsys FS) (Controller, bool) {
	for _, c := range Controllers() {
		if v, ok := fsys.Version(c); ok && v == V2 {
			return c, true
		}
	}
	return "", false
}

// ReadType reads cgroup.type of a v2 cgroup: "domain", "domain threaded", "domain invalid" or "threaded". The root is a
// domain. On v1 it returns "".
func ReadType(fsys FS, c Controller, path string) (string, error) {
	if v, _ := fsys.Version(c); v != V2 {
		return "", nil
	}
	kind, err := fsys.Read(c, path, FileType)
	if errors.Is(err, ErrNoFile) {
		return "domain", nil
	}
	return kind, err
}
