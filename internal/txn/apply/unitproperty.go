package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// errNoSystemd: a property is to be read or set, and there is no manager.
var errNoSystemd = errors.New("systemd does not answer on D-Bus here; its properties cannot be read or set")

// unitProperty is a runtime property of a systemd unit.
type unitProperty struct{ inCgroup }

func (unitProperty) normalise(c change.Change) (change.Change, error) {
	c.Controller = ""
	if c.Unit == "" || c.Path == "" {
		return c, fmt.Errorf("property %s needs its unit and the unit's cgroup", c.File)
	}
	return c, nil
}

func (u unitProperty) read(ctx context.Context, k change.Key) (string, error) {
	if u.Systemd == nil {
		return "", fmt.Errorf("%s: %w", k, errNoSystemd)
	}
	return u.Systemd.Get(ctx, k.Unit, k.File)
}

func (u unitProperty) write(ctx context.Context, c change.Change) error {
	if u.Systemd == nil {
		return fmt.Errorf("%s: %w", c.Key(), errNoSystemd)
	}
	return u.Systemd.Set(ctx, c.Unit, map[string]string{c.File: c.To}, true)
}

func (unitProperty) id(change.Key) (uint64, error) { return 0, nil }

func (unitProperty) identity(journal.Setting, uint64) (string, error) { return "", nil }

func (unitProperty) exists(journal.Setting) (bool, error) { return true, nil }

func (unitProperty) traits() traits { return traits{valued: true} }

// forgetProperties has systemd drop what it keeps of the properties that were put back. What it keeps otherwise ends with the
// next boot.
func (r *run) forgetProperties(ctx context.Context) {
	values := map[string]map[string]string{}
	for _, w := range r.res.Writes {
		if w.Kind != change.KindSystemd || !w.Done {
			continue
		}
		if values[w.Unit] == nil {
			values[w.Unit] = map[string]string{}
		}
		values[w.Unit][w.File] = w.After
	}
	if len(values) == 0 || r.Systemd == nil {
		return
	}
	if err := r.Systemd.Forget(ctx, values); err != nil {
		r.warn("%v", err)
	}
}

// withFiles adds, to each list that is set through systemd, the file behind it. systemd cannot empty the file while
// processes are inside (systemd#43846), so that the rollback of the property alone
// would not work; and it writes the file only after it has answered.
func (w world) withFiles(changes []change.Change) []change.Change {
	behind := map[string]string{unitprop.AllowedCPUs: cgroup.FileCPUs, unitprop.AllowedMemoryNodes: cgroup.FileMems}
	if w.version(cgroup.CPUSet) != cgroup.V2 {
		// On v1 systemd has no CPU sets.
		return changes
	}
	have := map[change.Key]bool{}
	for _, c := range changes {
		have[c.Key()] = true
	}
	all := slices.Clone(changes)
	for _, c := range changes {
		file := behind[c.File]
		if c.Kind != change.KindSystemd || file == "" {
			continue
		}
		c.Kind, c.Controller, c.File, c.Unit, c.From = change.KindFile, cgroup.CPUSet, file, "", ""
		if !have[c.Key()] {
			all = append(all, c)
		}
	}
	return all
}
