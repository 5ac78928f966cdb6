package runtimes

import (
	"strings"

	"github.com/unthrottle/unthrottle/internal/container/names"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// Owner is the container that a cgroup belongs to whose path tells nothing.
type Owner struct {
	// Cgroup is the container's topmost cgroup: the asked one, or one above it.
	Cgroup string
	// ID is the runtime's id.
	ID string
	names.Names
}

// Owner finds the container of a cgroup by one of its processes: ctr, nerdctl, and each runtime with a parent cgroup of
// the user's choice leave no mark in the path. The container's config.json must name this cgroup or one above it.
func (h *Host) Owner(path string, pid int) (Owner, bool) {
	if h == nil {
		return Owner{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.monitor(pid)
	if !ok {
		return Owner{}, false
	}
	// A pod's shim has the sandbox's id; the container's own is in the path then.
	ids := []string{m.ID}
	if m.Shim {
		for part := range strings.SplitSeq(path, "/") {
			if names.IsID(part) {
				ids = append(ids, part)
			}
		}
	}
	for _, id := range ids[:min(len(ids), 4)] {
		if b := h.monitored(m, id); b.Cgroup != "" && cgroup.Below(path, b.Cgroup) {
			return Owner{Cgroup: b.Cgroup, ID: id, Names: b.Names}, true
		}
	}
	return Owner{}, false
}
