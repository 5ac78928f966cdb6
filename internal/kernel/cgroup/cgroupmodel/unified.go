package cgroupmodel

import (
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"golang.org/x/sys/unix"
)

// The rules of kernel/cgroup/cgroup.c for the unified hierarchy. cpu and cpuset are both threaded controllers, so a
// cgroup with processes may enable them for children. It then becomes a thread root ("domain threaded") and its
// children cannot hold processes ("domain invalid"). EBUSY comes only if it has populated domain children already.

// isThreadRoot models cgroup_is_thread_root.
func (k *Kernel) isThreadRoot(t *tree, g *group) bool {
	if g.threaded {
		return false
	}
	for _, child := range g.children {
		if child.threaded {
			return true
		}
	}
	return g.parent != nil && len(g.subtree) > 0 && k.populated(t, g, false)
}

// canBeThreadRoot models cgroup_can_be_thread_root.
func (k *Kernel) canBeThreadRoot(t *tree, g *group) bool {
	if g.parent == nil {
		return true
	}
	for _, child := range g.children {
		if !child.threaded && k.populated(t, child, true) {
			return false
		}
	}
	return !g.threaded
}

// isValidDomain models cgroup_is_valid_domain.
func (k *Kernel) isValidDomain(t *tree, g *group) bool {
	if g.threaded {
		return false
	}
	for above := g.parent; above != nil; above = above.parent {
		if above.threaded || above.parent != nil && k.isThreadRoot(t, above) {
			return false
		}
	}
	return true
}

// domain models dom_cgrp: the thread root of a threaded cgroup, else itself.
func domain(g *group) *group {
	for g.threaded {
		g = g.parent
	}
	return g
}

// kind returns the content of cgroup.type.
func (k *Kernel) kind(t *tree, g *group) string {
	switch {
	case g.threaded:
		return "threaded"
	case !k.isValidDomain(t, g):
		return "domain invalid"
	case k.isThreadRoot(t, g):
		return "domain threaded"
	}
	return "domain"
}

// vetDestination models cgroup_migrate_vet_dst.
func (k *Kernel) vetDestination(t *tree, g *group) error {
	switch {
	case !k.isValidDomain(t, domain(g)):
		return unix.EOPNOTSUPP
	case k.canBeThreadRoot(t, g), g.threaded:
		return nil
	case len(g.subtree) > 0:
		return unix.EBUSY
	}
	return nil
}

// setType models cgroup_type_write and cgroup_enable_threaded.
func (k *Kernel) setType(t *tree, g *group, value string) error {
	switch {
	case value != "threaded":
		return unix.EINVAL
	case g.threaded:
		return nil
	}
	above := domain(g.parent)
	if k.populated(t, g, true) || !k.isValidDomain(t, above) || !k.canBeThreadRoot(t, above) {
		return unix.EOPNOTSUPP
	}
	g.threaded = true
	return nil
}

// setSubtree models cgroup_subtree_control_write.
func (k *Kernel) setSubtree(t *tree, g *group, value string) error {
	enable, disable := map[cgroup.Controller]bool{}, map[cgroup.Controller]bool{}
	for _, word := range strings.Fields(value) {
		c := cgroup.Controller(strings.TrimLeft(word, "+-"))
		if !slices.Contains(t.controllers, c) || len(word) != len(c)+1 {
			return unix.EINVAL
		}
		delete(enable, c)
		delete(disable, c)
		if word[0] == '+' {
			enable[c] = true
		} else {
			disable[c] = true
		}
	}
	for _, c := range t.controllers {
		if enable[c] && g.subtree[c] {
			delete(enable, c)
		}
		if disable[c] && !g.subtree[c] {
			delete(disable, c)
		}
		if enable[c] && !slices.Contains(t.enabled(g), c) {
			return unix.ENOENT
		}
		for _, child := range g.children {
			if disable[c] && child.subtree[c] {
				return unix.EBUSY
			}
		}
	}
	if err := k.vetEnable(t, g, len(enable) > 0); err != nil {
		return err
	}
	for c := range enable {
		g.subtree[c] = true
		for _, child := range g.children {
			k.enable(t, child, c)
		}
	}
	for c := range disable {
		delete(g.subtree, c)
		for _, child := range g.children {
			child.disable(c)
		}
	}
	return nil
}

// vetEnable models cgroup_vet_subtree_control_enable for threaded controllers.
func (k *Kernel) vetEnable(t *tree, g *group, enables bool) error {
	switch {
	case !enables:
		return nil
	case !k.isValidDomain(t, domain(g)):
		return unix.EOPNOTSUPP
	case g.parent == nil, k.canBeThreadRoot(t, g), g.threaded:
		return nil
	case k.populated(t, g, false):
		return unix.EBUSY
	}
	return nil
}

// enabled returns the controllers that a cgroup has: cgroup.controllers.
func (t *tree) enabled(g *group) []cgroup.Controller {
	if g.parent == nil {
		return t.controllers
	}
	var all []cgroup.Controller
	for _, c := range t.controllers {
		if g.parent.subtree[c] {
			all = append(all, c)
		}
	}
	return all
}

func join(controllers []cgroup.Controller) string {
	words := make([]string, len(controllers))
	for i, c := range controllers {
		words[i] = string(c)
	}
	// The kernel lists them in the order of its subsystems: cpuset, cpu.
	slices.Sort(words)
	slices.Reverse(words)
	return strings.Join(words, " ")
}
