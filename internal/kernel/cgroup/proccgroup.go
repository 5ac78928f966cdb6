package cgroup

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds on /proc/PID/cgroup: a line holds a path of at most PATH_MAX bytes, and a kernel has few hierarchies.
const (
	maxProcCgroupBytes = 1 << 20
	maxHierarchies     = 256
)

// membership is one line of /proc/PID/cgroup: a process's cgroup in one hierarchy.
type membership struct {
	// Controllers of the hierarchy, with "name=x" for a named one; empty on v2.
	Controllers []Controller
	// Path as the reader's cgroup namespace shows it; "/../x" is outside of it.
	Path string
	// Deleted reports that v2 shows the cgroup as removed while the process still ends. A living cgroup whose name ends
	// in " (deleted)" looks the same.
	Deleted bool
}

// Has reports whether the line is about the hierarchy of c: the v1 hierarchy of c, or on v2 the unified one.
func (m membership) Has(v Version, c Controller) bool {
	if v == V2 {
		return len(m.Controllers) == 0
	}
	return slices.Contains(m.Controllers, c)
}

// parseProcCgroup reads /proc/PID/cgroup: "3:cpu,cpuacct:/a" (v1), "0::/a" (v2). It skips lines of another shape: on
// old kernels a newline in a cgroup's name splits a line in two.
func parseProcCgroup(text string) []membership {
	var memberships []membership
	for line := range strings.Lines(text) {
		number, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		list, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !strings.HasPrefix(path, "/") || len(memberships) == maxHierarchies {
			continue
		}
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil || (id == 0) != (list == "") {
			continue
		}
		m := membership{Path: path}
		if list != "" {
			for name := range strings.SplitSeq(list, ",") {
				m.Controllers = append(m.Controllers, Controller(name))
			}
		} else if m.Path, m.Deleted = strings.CutSuffix(path, " (deleted)"); m.Path == "" {
			m.Path = "/"
		}
		memberships = append(memberships, m)
	}
	return memberships
}

// Of returns the cgroup of a process in the hierarchy of c; pid 0 is ourselves. False means that c is not mounted, or
// that the process has no line for it.
func (h *Host) Of(pid int, c Controller) (string, bool, error) {
	all, err := h.memberships(pid)
	if err != nil {
		return "", false, err
	}
	path, ok := h.memberPath(all, c)
	return path, ok, nil
}

// Members returns the processes that have a thread in a cgroup of the cpu hierarchy, each once. Procs cannot tell them of a
// threaded cgroup (v2); on v1 the threads of one process may be in several cgroups, each of which lists it.
func (h *Host) Members(path string) ([]int, error) {
	pids, err := h.Procs(CPU, path)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return pids, err
	}
	tids, err := h.Threads(CPU, path)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil // an invalid domain has none
	}
	if err != nil {
		return nil, err
	}
	for _, tid := range tids {
		text, err := readBounded(filepath.Join(h.procDir, strconv.Itoa(tid), "status"), maxFileBytes)
		if err != nil {
			continue // it ended meanwhile
		}
		for line := range strings.Lines(text) {
			if of, ok := strings.CutPrefix(line, "Tgid:"); ok {
				if pid, err := strconv.Atoi(strings.TrimSpace(of)); err == nil {
					pids = append(pids, pid)
				}
				break
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

func (h *Host) memberships(pid int) ([]membership, error) {
	name := "self"
	if pid > 0 {
		name = strconv.Itoa(pid)
	}
	text, err := readBounded(filepath.Join(h.procDir, name, "cgroup"), maxProcCgroupBytes)
	if err != nil {
		return nil, err
	}
	return parseProcCgroup(text), nil
}

// memberPath returns the path in the hierarchy of c; false if it is unknown or lies outside the mount. If the mount
// begins outside our cgroup namespace, both are relative to the namespace. Under the root "/.." the process at "/../x"
// is in /x. But one at "/" is in a cgroup whose name we do not see.
func (h *Host) memberPath(memberships []membership, c Controller) (string, bool) {
	m, ok := h.mounts[c]
	if !ok {
		return "", false
	}
	for _, line := range memberships {
		if !line.Has(m.Version, c) {
			continue
		}
		path := line.Path
		if m.foreign() {
			if !Below(path, m.Root) {
				return "", false
			}
			if path = path[len(m.Root):]; path == "" {
				path = "/"
			}
		}
		return path, CheckPath(path) == nil
	}
	return "", false
}
