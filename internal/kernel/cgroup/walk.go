package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
)

// Walk visits scope and all cgroups below it in the cpu hierarchy, parents before children, siblings in byte order.
// scope "" means all visible cgroups. fn may return fs.SkipDir to leave out the descendants, or fs.SkipAll to end. Walk
// skips a cgroup that vanishes meanwhile, but scope itself must exist. Beyond maxGroups or MaxDepth the walk ends with
// ErrTooMuch, after fn has had all cgroups before.
func (h *Host) Walk(scope string, fn func(path string) error) error {
	if scope == "" {
		scope = h.Top(CPU)
	}
	return Walk(h, CPU, scope, fn)
}

// Walk visits a cgroup and all below it in the hierarchy of c, as Host.Walk does.
func Walk(fsys FS, c Controller, scope string, fn func(path string) error) error {
	if _, err := fsys.ID(c, scope); err != nil {
		return err
	}
	type step struct {
		path  string
		depth int
	}
	stack := []step{{scope, 0}}
	for seen := 0; len(stack) > 0; seen++ {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen == maxGroups || at.depth > MaxDepth {
			return fmt.Errorf("cgroups below %s: more than %d, or deeper than %d: %w", show(scope, 4096), maxGroups, MaxDepth, ErrTooMuch)
		}
		switch err := fn(at.path); err {
		case nil:
		case fs.SkipDir:
			continue
		case fs.SkipAll:
			return nil
		default:
			return err
		}
		children, err := fsys.Children(c, at.path)
		if errors.Is(err, ErrNoCgroup) {
			continue
		}
		if err != nil {
			return err
		}
		for i := len(children) - 1; i >= 0; i-- {
			stack = append(stack, step{children[i], at.depth + 1})
		}
	}
	return nil
}
