package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/txn/change"
	"github.com/unthrottle/unthrottle/internal/cure/txn/journal"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// world reads and writes settings of every kind.
type world struct{ Env }

// errNoSystemd: a property is to be touched and there is no manager to ask.
var errNoSystemd = errors.New("systemd does not answer on D-Bus here; its properties cannot be read or set")

// read gives the present value of a setting.
func (w world) read(ctx context.Context, k change.Key) (string, error) {
	switch k.Kind {
	case change.KindFile:
		if w.isWeight(k) {
			return cgroup.ReadWeight(w.FS, k.Path)
		}
		return w.FS.Read(k.Controller, k.Path, k.File)
	case change.KindSystemd:
		if w.Systemd == nil {
			return "", fmt.Errorf("%s: %w", k, errNoSystemd)
		}
		return w.Systemd.Get(ctx, k.Unit, k.File)
	case change.KindCgroup:
		if _, err := w.FS.ID(k.Controller, k.Path); errors.Is(err, cgroup.ErrNoCgroup) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		return change.Present, nil
	case change.KindSubtree:
		return w.readSubtree(k)
	case change.KindTask:
		return k.Path, nil
	case change.KindIRQ:
		return w.readIRQ(k)
	case change.KindSched:
		return w.readSched(k)
	}
	return "", fmt.Errorf("%s: unknown kind %q", k, k.Kind)
}

// isWeight tells of the weight: "idle" is one too, which the kernel keeps in a file of its own.
func (w world) isWeight(k change.Key) bool {
	return k.Controller == cgroup.CPU && k.File == cgroup.WeightFile(w.version(cgroup.CPU))
}

// controllerOf is the controller that a subtree_control setting is about.
func controllerOf(k change.Key) string {
	_, name, _ := strings.Cut(k.File, ":")
	return name
}

func (w world) readSubtree(k change.Key) (string, error) {
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

// id tells which cgroup a setting belongs to; 0 where the kind has none of its own.
func (w world) id(k change.Key) (uint64, error) {
	switch k.Kind {
	case change.KindSystemd, change.KindCgroup:
		return 0, nil
	case change.KindIRQ:
		return w.idIRQ(k)
	case change.KindSched:
		return w.idSched(k)
	}
	return w.FS.ID(k.Controller, k.Path)
}

// touch does one step.
func (w world) touch(ctx context.Context, c change.Change) error {
	switch c.Kind {
	case change.KindFile:
		if w.isWeight(c.Key()) {
			return cgroup.WriteWeight(w.FS, c.Path, c.To)
		}
		return w.FS.Write(c.Controller, c.Path, c.File, c.To)
	case change.KindSystemd:
		if w.Systemd == nil {
			return fmt.Errorf("%s: %w", c.Key(), errNoSystemd)
		}
		return w.Systemd.Set(ctx, c.Unit, map[string]string{c.File: c.To}, true)
	case change.KindCgroup:
		if c.To == change.Present {
			return w.FS.Make(c.Controller, c.Path)
		}
		return w.remove(ctx, c)
	case change.KindSubtree:
		return w.FS.Write(c.Controller, c.Path, cgroup.FileSubtreeControl, c.To)
	case change.KindTask:
		return w.move(ctx, c)
	case change.KindIRQ:
		return w.writeIRQ(c)
	case change.KindSched:
		return w.writeSched(c)
	}
	return fmt.Errorf("%s: unknown kind %q", c.Key(), c.Kind)
}

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
	s := change.State{Versions: map[cgroup.Controller]cgroup.Version{}, Values: map[change.Setting]string{}}
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

// setting names a change in the journal's words.
func (w world) setting(k change.Key, id uint64) journal.Setting {
	return journal.Setting{Kind: k.Kind, Controller: k.Controller, Path: journal.Path(k.Path), File: k.File,
		Unit: journal.Path(k.Unit), ID: id, Boot: w.BootID}
}
