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

// Forget has systemd drop what it keeps of properties that Restore put back with Selector.Again and that nothing holds now.
func Forget(ctx context.Context, env Env, changes []change.Change) error {
	r, err := start(ctx, env)
	if err != nil {
		return err
	}
	defer r.j.Close()
	return r.forget(ctx, changes)
}

// forget has systemd drop what it keeps of the properties among changes that no transaction holds. It would end with the next boot
// otherwise. systemd reads its units anew for that, where it keeps something.
func (r *run) forget(ctx context.Context, changes []change.Change) error {
	if r.Systemd == nil {
		return nil
	}
	held := map[change.Key]bool{}
	for _, t := range r.j.State().Open() {
		for _, h := range t.Holds {
			held[h.Key()] = true
		}
	}
	values := map[string]map[string]string{}
	for _, c := range changes {
		if c.Kind != change.KindSystemd || held[c.Key()] {
			continue
		}
		value, err := r.read(ctx, c.Key())
		if err != nil {
			continue // the unit is gone, with what was kept of it
		}
		if values[c.Unit] == nil {
			values[c.Unit] = map[string]string{}
		}
		values[c.Unit][c.File] = value
	}
	if len(values) == 0 {
		return nil
	}
	return r.Systemd.Forget(ctx, values)
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
