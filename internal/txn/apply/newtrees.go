package apply

import (
	"context"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// tree is a part of one hierarchy: a cgroup and what is below it, or only what is below it.
type tree struct {
	controller cgroup.Controller
	path       string
	belowOnly  bool
}

// newTrees lists where the files to be written do not exist yet: cgroups that the transaction creates, and what lies
// below a cgroup for whose children it enables a controller.
func (w world) newTrees(ctx context.Context, changes []change.Change) ([]tree, error) {
	var newTrees []tree
	for _, c := range changes {
		if c.Kind != change.KindCgroup {
			continue
		}
		now, err := w.read(ctx, c.Key())
		if err != nil {
			return nil, err
		}
		if now == "" {
			newTrees = append(newTrees, tree{controller: c.Controller, path: c.Path})
		}
	}
	for _, c := range changes {
		if c.Kind != change.KindSubtree || w.within(c.Key(), newTrees) {
			continue
		}
		now, err := w.read(ctx, c.Key())
		if err != nil {
			return nil, err
		}
		if now != c.To {
			newTrees = append(newTrees, tree{cgroup.Controller(controllerOf(c.Key())), c.Path, true})
		}
	}
	return newTrees, nil
}

// within tells whether a setting lies in one of the trees.
func (w world) within(k change.Key, trees []tree) bool {
	if k.Kind == change.KindSystemd || k.Kind == change.KindCgroup {
		return false
	}
	for _, t := range trees {
		switch {
		case !cgroup.Below(k.Path, t.path):
		case t.belowOnly && k.Path != t.path && k.Kind == change.KindFile && k.Controller == t.controller:
			return true
		case !t.belowOnly && w.sameTree(t.controller, k.Controller):
			return true
		}
	}
	return false
}
