package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// subtreeControl is one controller in cgroup.subtree_control.
type subtreeControl struct{ inCgroup }

func (subtreeControl) normalise(c change.Change) (change.Change, error) {
	c.File = cgroup.FileSubtreeControl
	if !strings.HasPrefix(c.To, "+") {
		return c, fmt.Errorf("cgroup %q: controllers are enabled only, not %q", c.Path, c.To)
	}
	return c, nil
}

func (w subtreeControl) write(_ context.Context, c change.Change) error {
	return w.FS.Write(c.Controller, c.Path, cgroup.FileSubtreeControl, c.To)
}

func (subtreeControl) inside(k change.Key) (tree, bool) {
	return tree{cgroup.Controller(controllerOf(k)), k.Path, true}, true
}

// controllerOf is the controller that a subtree_control setting is about.
func controllerOf(k change.Key) string {
	_, name, _ := strings.Cut(k.File, ":")
	return name
}

func (w subtreeControl) read(_ context.Context, k change.Key) (string, error) {
	text, err := w.FS.Read(k.Controller, k.Path, cgroup.FileSubtreeControl)
	if err != nil {
		return "", err
	}
	name := controllerOf(k)
	if slices.Contains(strings.Fields(text), name) {
		return "+" + name, nil
	}
	return "-" + name, nil
}

// usedByOthers reports whether another program gave a child a list since the controller was enabled: disabling the
// controller would lose that list.
func (r subtreeControl) usedByOthers(st *journal.State, s journal.Setting) (bool, error) {
	if controllerOf(s.Key()) != string(cgroup.CPUSet) {
		return true, nil
	}
	children, err := r.FS.Children(s.Controller, string(s.Path))
	if err != nil {
		return false, err
	}
	for _, child := range children {
		for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
			value, err := r.FS.Read(cgroup.CPUSet, child, file)
			if errors.Is(err, cgroup.ErrNoCgroup) || errors.Is(err, cgroup.ErrNoFile) {
				continue
			}
			if err != nil {
				return false, err
			}
			if value != "" && !r.leftByUs(st, child, file, value) {
				return true, nil
			}
		}
	}
	return false, nil
}

// leftByUs tells whether a file has a value that we wrote, and that no transaction in force wants kept.
func (r subtreeControl) leftByUs(st *journal.State, path, file, value string) bool {
	id, err := r.FS.ID(cgroup.CPUSet, path)
	if err != nil {
		return false
	}
	s := r.inJournal(change.Key{Kind: change.KindFile, Controller: cgroup.CPUSet, Path: path, File: file}, id)
	held, _, _, _ := st.Holders(s)
	last, wrote := st.Last(s)
	return wrote && len(held) == 0 && last.Ours(file, value)
}
