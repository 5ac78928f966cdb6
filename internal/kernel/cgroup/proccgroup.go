package cgroup

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Bounds on /proc/PID/cgroup: a line holds a path of at most PATH_MAX bytes, and a kernel has few hierarchies.
const (
	maxProcCgroupBytes = 1 << 20
	maxHierarchies     = 256
)

// Membership is one line of /proc/PID/cgroup: where a process is in one hierarchy.
type Membership struct {
	// Controllers of the hierarchy, with "name=x" for a named one; empty on v2.
	Controllers []Controller
	// Path as the reader's cgroup namespace shows it; "/../x" is outside of it.
	Path string
	// Deleted: v2 says that the cgroup is gone and the process still ends. A living cgroup whose name ends in
	// " (deleted)" cannot be told from that.
	Deleted bool
}

// Has tells whether the line is about the hierarchy of c, which is v1 if v1, else v2.
func (m Membership) Has(v Version, c Controller) bool {
	if v == V2 {
		return len(m.Controllers) == 0
	}
	return slices.Contains(m.Controllers, c)
}

// ParseProcCgroup reads /proc/PID/cgroup: "3:cpu,cpuacct:/a" (v1), "0::/a" (v2). Lines of another shape are skipped:
// on old kernels a newline in a cgroup's name tears a line in two.
func ParseProcCgroup(text string) []Membership {
	var all []Membership
	for line := range strings.Lines(text) {
		number, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		list, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || !strings.HasPrefix(path, "/") || len(all) == maxHierarchies {
			continue
		}
		id, err := strconv.ParseUint(number, 10, 32)
		if err != nil || (id == 0) != (list == "") {
			continue
		}
		m := Membership{Path: path}
		if list != "" {
			for name := range strings.SplitSeq(list, ",") {
				m.Controllers = append(m.Controllers, Controller(name))
			}
		} else if m.Path, m.Deleted = strings.CutSuffix(path, " (deleted)"); m.Path == "" {
			m.Path = "/"
		}
		all = append(all, m)
	}
	return all
}

// Of gives the cgroup of a process in the hierarchy of c; pid 0 is ourselves. False: c is not mounted, or the
// process has no line for it.
func (h *Host) Of(pid int, c Controller) (string, bool, error) {
	all, err := h.memberships(pid)
	if err != nil {
		return "", false, err
	}
	path, ok := h.memberPath(all, c)
	return path, ok, nil
}

func (h *Host) memberships(pid int) ([]Membership, error) {
	name := "self"
	if pid > 0 {
		name = strconv.Itoa(pid)
	}
	text, err := readBounded(filepath.Join(h.procDir, name, "cgroup"), maxProcCgroupBytes)
	if err != nil {
		return nil, err
	}
	return ParseProcCgroup(text), nil
}

// memberPath picks the path in the hierarchy of c; false if it cannot be told or lies outside the mount. Where the
// mount begins outside our cgroup namespace, both are relative to the namespace: under the root "/.." the process at
// "/../x" is in /x, but one at "/" is in a cgroup whose name we are not shown.
func (h *Host) memberPath(all []Membership, c Controller) (string, bool) {
	m, ok := h.mounts[c]
	if !ok {
		return "", false
	}
	for _, line := range all {
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
