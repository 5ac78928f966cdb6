package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
)

// mayWrite says why this user cannot change a container's limit, before anything is recorded or asked; nil: nothing speaks
// against it. Where systemd writes for us, it judges. A cgroup without a limit's file, such as the root, is left to the plan.
func mayWrite(h *cgroup.Host, path string, bySystemd bool) error {
	v, ok := h.Version(cgroup.CPU)
	if !ok || bySystemd {
		return nil
	}
	file := cgroup.LimitFiles(v)[0]
	switch err := unix.Faccessat(unix.AT_FDCWD, filepath.Join(h.Dir(cgroup.CPU, path), file), unix.W_OK, unix.AT_EACCESS); {
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("cgroup %s: user %d must not write %s, so nothing could be changed: run as root; "+
			"'unthrottle check' says what is missing",
			text.EscapePath(path), os.Geteuid(), file)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("cgroup %s: %s is on a read-only mount, so nothing could be changed: run on the host, or "+
			"in a container that may write cgroups",
			text.EscapePath(path), file)
	}
	return nil
}
