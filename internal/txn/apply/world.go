package apply

import (
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// world reads and writes settings of every kind.
type world struct{ Env }

func (w world) read(ctx context.Context, k change.Key) (string, error) {
	return w.kind(k.Kind).read(ctx, k)
}

func (w world) id(k change.Key) (uint64, error) { return w.kind(k.Kind).id(k) }

// sameTree tells whether two controllers share one tree of cgroups.
func (w world) sameTree(a, b cgroup.Controller) bool {
	if a == b {
		return true
	}
	va, _ := w.FS.Version(a)
	vb, _ := w.FS.Version(b)
	return va == cgroup.V2 && vb == cgroup.V2
}

func (w world) version(c cgroup.Controller) cgroup.Version {
	v, _ := w.FS.Version(c)
	return v
}

// orderState reads what change.Order has to know beside the changes themselves.
func (w world) orderState(changes []change.Change) change.State {
	s := change.State{Versions: map[cgroup.Controller]cgroup.Version{}, Values: map[change.Setting]string{},
		LimitedBelow: map[string]bool{}}
	for _, c := range cgroup.Controllers() {
		if v, ok := w.FS.Version(c); ok {
			s.Versions[c] = v
		}
	}
	for _, c := range changes {
		files := cgroup.LimitFiles(s.Versions[c.Controller])
		if c.Kind != change.KindFile || !slices.Contains(files, c.File) {
			continue
		}
		if _, known := s.LimitedBelow[c.Path]; !known {
			s.LimitedBelow[c.Path] = w.limitedBelow(c.Path)
		}
		for _, file := range files {
			key := change.Setting{Controller: c.Controller, Path: c.Path, File: file}
			if _, have := s.Values[key]; have {
				continue
			}
			// A file that is not there (burst before 5.14) is no part of the limit.
			if value, err := w.FS.Read(c.Controller, c.Path, file); err == nil {
				s.Values[key] = value
			}
		}
	}
	return s
}

// limitedBelow reports whether a cgroup below a path has a quota. What cannot be read has none that matters: it is gone.
func (w world) limitedBelow(path string) bool {
	children, err := w.FS.Children(cgroup.CPU, path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(children, func(child string) bool {
		l, err := cgroup.ReadLimit(w.FS, child)
		return err == nil && l.Limited() || w.limitedBelow(child)
	})
}

// inJournal names a change in the journal's words.
func (w world) inJournal(k change.Key, id uint64) journal.Setting {
	boot := w.BootID
	if w.kind(k.Kind).traits().lasting {
		boot = ""
	}
	return journal.Setting{Kind: k.Kind, Controller: k.Controller, Path: journal.Path(k.Path), File: k.File,
		Unit: journal.Path(k.Unit), ID: id, Boot: boot}
}

// otherBoot reports a setting that ended with an earlier boot.
func (w world) otherBoot(s journal.Setting) bool {
	return s.Boot != w.BootID && !w.kind(s.Kind).traits().lasting
}
