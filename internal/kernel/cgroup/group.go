package cgroup

import "strings"

// Bounds on the search for a group's counterparts.
const (
	maxMembersAsked = 4
	maxGroupsAsked  = 64
)

// Group finds the counterparts of a cgroup of the cpu hierarchy. Where controllers share a tree the path is the same.
// On separate v1 hierarchies it reads /proc/PID/cgroup of some members. A member of a descendant counts with the part
// below cut off where it repeats. Several members that differ give their common ancestor. Without a readable member it
// takes the same path if it exists there, else its nearest existing ancestor.
func (h *Host) Group(path string) (Group, error) {
	if _, err := h.ID(CPU, path); err != nil {
		return Group{}, err
	}
	g := Group{Path: path}
	var members [][]membership
	asked := false
	for c, to := range map[Controller]*string{CPUSet: &g.CPUSetPath, CPUAcct: &g.CPUAcctPath} {
		if _, ok := h.mounts[c]; !ok {
			continue
		}
		if h.SameHierarchy(CPU, c) {
			*to = path
			continue
		}
		if !asked {
			members, asked = h.members(path), true
		}
		*to = h.counterpart(path, c, members)
	}
	return g, nil
}

// members reads some processes of a cgroup or, if it has none itself, of its descendants.
func (h *Host) members(path string) [][]membership {
	var found [][]membership
	queue := []string{path}
	for asked := 0; asked < maxGroupsAsked && asked < len(queue) && len(found) == 0; asked++ {
		pids, err := h.Members(queue[asked])
		if err != nil {
			continue
		}
		for _, pid := range pids {
			if len(found) == maxMembersAsked {
				break
			}
			if pid <= 0 {
				continue
			}
			all, err := h.memberships(pid)
			if err != nil {
				continue
			}
			// The process may have moved, or another may have its number now, so it must still be below path.
			if at, ok := h.memberPath(all, CPU); ok && Below(at, path) {
				found = append(found, all)
			}
		}
		if children, err := h.Children(CPU, queue[asked]); err == nil && len(queue) < maxGroupsAsked {
			queue = append(queue, children...)
		}
	}
	return found
}

func (h *Host) counterpart(path string, c Controller, members [][]membership) string {
	common, known := "", false
	for _, memberships := range members {
		there, ok := h.memberPath(memberships, c)
		if !ok {
			continue
		}
		at, _ := h.memberPath(memberships, CPU)
		if below := strings.TrimPrefix(at, path); below != at && below != "" {
			if there = strings.TrimSuffix(there, below); there == "" {
				there = "/"
			}
		}
		if !known {
			common, known = there, true
		}
		for !Below(there, common) {
			common = Parent(common)
		}
	}
	if known && Exists(h, c, common) {
		return common
	}
	top := h.Top(c)
	for ; path != "/" && path != top; path = Parent(path) {
		if Exists(h, c, path) {
			return path
		}
	}
	return top
}
