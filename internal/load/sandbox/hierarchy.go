package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// hierarchy is one tree of cgroups. The package cgroup knows those of cpu, cpuset
// and cpuacct. Of memory and pids on v1 the mount point is enough: a sandbox only
// makes and removes cgroups there.
type hierarchy struct {
	fs         cgroup.FS // nil: by mount
	controller cgroup.Controller
	mount      string
}

// path returns a group's path in this hierarchy.
func (h hierarchy) path(g cgroup.Group) string { return path(g, h.controller) }

func (h hierarchy) make(g cgroup.Group) error {
	if h.fs != nil {
		return h.fs.Make(h.controller, h.path(g))
	}
	return os.Mkdir(h.mount+h.path(g), 0o755)
}

func (h hierarchy) attach(g cgroup.Group, pid int) error {
	if h.fs != nil {
		return h.fs.Attach(h.controller, h.path(g), pid)
	}
	return os.WriteFile(filepath.Join(h.mount+h.path(g), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// children returns the paths of the direct children; none where path is no cgroup.
func (h hierarchy) children(path string) (all []string, err error) {
	if h.fs != nil {
		all, err = h.fs.Children(h.controller, path)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			err = nil
		}
		return all, err
	}
	entries, err := os.ReadDir(h.mount + path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, cgroup.Join(path, e.Name()))
		}
	}
	return all, err
}

// removeTree removes a cgroup and all below it, the lowest first. Where one cannot
// be removed it goes on with the others.
func (h hierarchy) removeTree(top string, patience *time.Duration) error {
	var failed []error
	tree := []string{top}
	for i := 0; i < len(tree) && len(tree) <= maxGroups; i++ {
		children, err := h.children(tree[i])
		failed = append(failed, err)
		tree = append(tree, children...)
	}
	for _, path := range slices.Backward(tree) {
		failed = append(failed, h.removeWhenEmpty(path, patience))
	}
	return errors.Join(failed...)
}

// removeWhenEmpty removes a cgroup. It waits for tasks that are exiting: a thread
// leaves its cgroup a moment after its parent has reaped the process. What it waits
// is taken from patience.
func (h hierarchy) removeWhenEmpty(path string, patience *time.Duration) error {
	const pause = 20 * time.Millisecond
	for {
		err := h.remove(path)
		switch {
		case err == nil || errors.Is(err, cgroup.ErrNoCgroup) || errors.Is(err, os.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || *patience <= 0:
			return err
		}
		time.Sleep(pause)
		*patience -= pause
	}
}

func (h hierarchy) remove(path string) error {
	if h.fs != nil {
		return h.fs.Remove(h.controller, path)
	}
	return os.Remove(h.mount + path)
}

// accountingMounts returns where the v1 hierarchies of memory and pids are mounted
// whole (proc_pid_mountinfo(5)); none where the file cannot be read.
func accountingMounts(mountinfo string) []string {
	text, err := os.ReadFile(mountinfo)
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(rest) < 3 || rest[0] != "cgroup" || fields[3] != "/" {
			continue
		}
		options := strings.Split(rest[2], ",")
		if slices.Contains(options, "cpu") || slices.Contains(options, "cpuset") || slices.Contains(options, "cpuacct") {
			continue // known by its controller
		}
		if (slices.Contains(options, "memory") || slices.Contains(options, "pids")) && !slices.Contains(found, fields[4]) {
			found = append(found, fields[4])
		}
	}
	return found
}
