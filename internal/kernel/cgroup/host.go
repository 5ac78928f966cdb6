package cgroup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Host is the cgroup trees of a real (or saved) machine. It holds no open files; several goroutines may call its
// methods.
type Host struct {
	procDir string
	mounts  map[Controller]hierarchyMount
	private bool
}

// initialCgroupNamespace is the inode of the first cgroup namespace: PROC_CGROUP_INIT_INO in include/linux/proc_ns.h.
const initialCgroupNamespace = "cgroup:[4026531835]"

// Open finds the hierarchies from procDir/self/mountinfo. procDir is "/proc" or a fake tree whose mountinfo names
// temporary mount points. A controller that is mounted nowhere is no error here; Mount reports it.
func Open(procDir string) (*Host, error) { return open(procDir, "self", "") }

// OpenIn finds the hierarchies as the mount namespace of a process has them, through its root directory: a container's own
// cgroup file system, seen from another container of its pod. The kernel lets the same user do that, or who has CAP_SYS_PTRACE.
func OpenIn(procDir string, pid int) (*Host, error) {
	return open(procDir, strconv.Itoa(pid), filepath.Join(procDir, strconv.Itoa(pid), "root"))
}

// open finds the hierarchies in the mountinfo of a process, below a directory that is its root.
func open(procDir, process, root string) (*Host, error) {
	text, err := readBounded(filepath.Join(procDir, process, "mountinfo"), maxMountinfoBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot find the cgroup mounts: %w", err)
	}
	h := &Host{procDir: procDir}
	hierarchyMounts := parseMountinfo(text)
	for i := range hierarchyMounts {
		hierarchyMounts[i].Dir = root + hierarchyMounts[i].Dir
	}
	var unreadable error
	h.mounts = pickMounts(hierarchyMounts, reachable, func(m Mount) []Controller {
		list, err := readBounded(filepath.Join(m.Dir, FileControllers), maxFileBytes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			unreadable = fmt.Errorf("cannot determine which controllers cgroup v2 has: %w", err)
		}
		return parseControllers(list)
	})
	if unreadable != nil {
		return nil, unreadable
	}
	h.private = h.findPrivate(hierarchyMounts)
	return h, nil
}

// reachable is false for mounts that are hidden below another mount or lie outside our root directory.
func reachable(m Mount) bool {
	_, err := os.Stat(filepath.Join(m.Dir, FileProcs))
	return err == nil
}

// findPrivate decides by the namespace's inode. If that is unreadable, only a root above us shows a private namespace.
func (h *Host) findPrivate(mounts []hierarchyMount) bool {
	if link, err := os.Readlink(filepath.Join(h.procDir, "self", "ns", "cgroup")); err == nil {
		return link != initialCgroupNamespace
	}
	return slices.ContainsFunc(mounts, func(m hierarchyMount) bool { return m.foreign() })
}

// Mount returns where a controller is mounted. On v2 CPUAcct has the CPU mount.
func (h *Host) Mount(c Controller) (Mount, bool) {
	m, ok := h.mounts[c]
	return m.Mount, ok
}

// Version implements FS.
func (h *Host) Version(c Controller) (Version, bool) {
	m, ok := h.mounts[c]
	return m.Version, ok
}

// SameHierarchy reports whether two controllers share one tree of cgroups, hence one path per group.
func (h *Host) SameHierarchy(a, b Controller) bool {
	ma, oka := h.mounts[a]
	mb, okb := h.mounts[b]
	return oka && okb && ma.device == mb.device
}

// Mode returns "v1", "v2", "mixed" (controllers on both) or "none" (neither cpu, cpuset nor cpuacct is mounted).
func (h *Host) Mode() string {
	mode := "none"
	for _, c := range Controllers() {
		m, ok := h.mounts[c]
		if !ok {
			continue
		}
		switch v := m.Version.String(); {
		case mode == "none":
			mode = v
		case mode != v:
			return "mixed"
		}
	}
	return mode
}

// PrivateNamespace reports whether we run in our own cgroup namespace. The paths in /proc/PID/cgroup are then relative
// to it and mean nothing outside.
func (h *Host) PrivateNamespace() bool { return h.private }

// Top returns the highest visible cgroup: "/" on a host. Limits above it apply but are unreadable. If the mount begins
// outside our cgroup namespace, paths are relative to the mount, and Top is "/" too.
func (h *Host) Top(c Controller) string {
	m, ok := h.mounts[c]
	if !ok || m.foreign() {
		return "/"
	}
	return m.Root
}

// Dir returns the absolute directory of a cgroup. It returns "" if the controller is not mounted or the path cannot lie
// below it.
func (h *Host) Dir(c Controller, path string) string {
	dir, err := h.dir(c, path)
	if err != nil {
		return ""
	}
	return dir
}

func (h *Host) dir(c Controller, path string) (string, error) {
	m, ok := h.mounts[c]
	if !ok {
		return "", ErrNoController
	}
	if err := CheckPath(path); err != nil {
		return "", err
	}
	top := h.Top(c)
	if !Below(path, top) {
		return "", ErrOutside
	}
	if top != "/" {
		path = path[len(top):]
	}
	return strings.TrimSuffix(m.Dir+path, "/"), nil
}

// readBounded reads a whole file of at most limit bytes; kernel files do not show their size beforehand.
func readBounded(name string, limit int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > limit {
		return "", fmt.Errorf("%s: more than %d bytes: %w", name, limit, ErrTooMuch)
	}
	return string(data), nil
}

func parseControllers(list string) []Controller {
	var controllers []Controller
	for _, word := range strings.Fields(list) {
		if len(controllers) == 64 {
			break
		}
		controllers = append(controllers, Controller(word))
	}
	return controllers
}
