package cgroup

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// CleanPath turns a user's text into a kernel path of the cpu hierarchy. It accepts "/a/b", "a/b", or a directory below
// a mount ("/sys/fs/cgroup/cpu/a/b"). It understands text that EscapePath wrote, but prefers a cgroup that literally
// has that name. The cgroup need not exist. It refuses "..", NUL, and a directory of another hierarchy that has no
// counterpart in the cpu hierarchy.
func CleanPath(h *Host, arg string) (string, error) {
	if arg == "" {
		return "", fmt.Errorf("cgroup path: %w: it is empty", ErrBadPath)
	}
	path, err := h.fromDirectory(arg)
	if err != nil {
		return "", err
	}
	if path, err = tidy(path); err != nil {
		return "", fmt.Errorf("cgroup path %s: %w", show(arg, 4096), err)
	}
	if decoded := text.UnescapePath(path); decoded != path && !Exists(h, CPU, path) && Exists(h, CPU, decoded) {
		path = decoded
	}
	return path, nil
}

// tidy drops empty and "." parts. It refuses ".." instead of resolving it.
func tidy(path string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	path = "/" + strings.Join(parts, "/")
	return path, CheckPath(path)
}

// fromDirectory maps a directory below a mount point to its kernel path; other text stays as it is.
func (h *Host) fromDirectory(arg string) (string, error) {
	if !strings.HasPrefix(arg, "/") || strings.Contains(arg, "\x00") || strings.Contains(arg+"/", "/../") {
		return arg, nil
	}
	names := []string{filepath.Clean(arg)}
	// /sys/fs/cgroup/cpu is often a symlink to cpu,cpuacct.
	if real, err := filepath.EvalSymlinks(arg); err == nil && real != names[0] {
		names = append(names, real)
	}
	for _, name := range names {
		for _, c := range Controllers() {
			m, ok := h.mounts[c]
			if !ok || m.Dir == "/" || !Below(name, m.Dir) {
				continue
			}
			path := strings.TrimSuffix(h.Top(c), "/") + name[len(m.Dir):]
			if path == "" {
				path = "/"
			}
			if c != CPU && !h.SameHierarchy(c, CPU) && !Exists(h, CPU, path) {
				return "", fmt.Errorf("%s lies in the %s hierarchy, and the cpu hierarchy has no %s: name the cgroup there",
					show(arg, 4096), c, show(path, 4096))
			}
			return path, nil
		}
	}
	return arg, nil
}
