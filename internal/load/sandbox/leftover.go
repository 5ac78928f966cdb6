package sandbox

import (
	"errors"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// leftoverPatience is how long a leftover may take to become empty: children of
// a killed run end by themselves.
const leftoverPatience = 3 * time.Second

// RemoveLeftovers removes the homes below the scope whose name has one of the
// prefixes and whose owner is gone, and says how many. Notes are on those that
// could not be removed.
func RemoveLeftovers(host *cgroup.Host, scope string, prefixes ...string) (removed int, notes []string, err error) {
	h := &Home{host: host}
	at, err := h.find(scope)
	if err != nil {
		return 0, nil, err
	}
	self, err := ourselves("/proc")
	if err != nil {
		return 0, nil, err
	}
	for _, prefix := range prefixes {
		n, more := h.removeLeftovers(prefix, at, self.pidNS)
		removed, notes = removed+n, append(notes, more...)
	}
	return removed, notes, nil
}

// removeLeftovers removes the homes of owners who are gone.
func (h *Home) removeLeftovers(prefix string, scope cgroup.Group, ourNS uint64) (removed int, notes []string) {
	runs := map[string]bool{}
	for _, c := range h.hierarchies {
		homes, err := h.host.Children(c, in(scope, c))
		if err != nil {
			notes = append(notes, "leftovers of killed runs were not looked for: "+err.Error())
			continue
		}
		for _, path := range homes {
			if o, ours := parseOwner(prefix, cgroup.Base(path)); !ours || !o.gone("/proc", ourNS) {
				continue
			}
			if err := h.removeTree(c, path); err != nil {
				notes = append(notes, "a leftover of a killed run stays: "+err.Error())
				continue
			}
			runs[cgroup.Base(path)] = true
		}
	}
	return len(runs), notes
}

// removeTree removes a cgroup and all below it, the lowest first.
func (h *Home) removeTree(c cgroup.Controller, top string) error {
	tree := []string{top}
	for i := 0; i < len(tree) && len(tree) <= MaxGroups; i++ {
		children, err := h.host.Children(c, tree[i])
		if err != nil && !errors.Is(err, cgroup.ErrNoCgroup) {
			return err
		}
		tree = append(tree, children...)
	}
	for _, path := range slices.Backward(tree) {
		if err := removeWhenEmpty(h.host, c, path, leftoverPatience); err != nil {
			return err
		}
	}
	return nil
}
