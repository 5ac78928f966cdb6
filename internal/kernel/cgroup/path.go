package cgroup

import (
	"strings"
)

// CheckPath accepts a kernel path: "/" or "/a/b", no empty, "." or ".." part, no NUL. All other bytes are data,
// including newlines and broken UTF-8.
func CheckPath(path string) error {
	if path == "/" {
		return nil
	}
	if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return ErrBadPath
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return ErrBadPath
		}
	}
	return nil
}

// Parent returns the path one level up; the parent of "/" is "/".
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Join appends one part to a path.
func Join(path, part string) string {
	if path == "/" {
		return "/" + part
	}
	return path + "/" + part
}

// Base returns the last part of a path, "" for "/".
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Below reports whether path is scope or a descendant of it; scope "" and "/" contain every path.
func Below(path, scope string) bool {
	return scope == "" || scope == "/" || path == scope ||
		len(path) > len(scope) && path[:len(scope)] == scope && path[len(scope)] == '/'
}
