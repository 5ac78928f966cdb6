package apply

import (
	"errors"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// beside are the files that a step may change for a moment too, for its entry in the journal.
func (r *run) beside(c change.Change) (neighbours []journal.Beside) {
	fs, ok := r.FS.(cgroup.Besides)
	if !ok || c.Kind != change.KindFile {
		return nil
	}
	for _, v := range fs.Beside(c.Controller, c.Path, c.File, c.To) {
		neighbours = append(neighbours, journal.Beside{Controller: v.Controller, File: v.File, Value: journal.Path(v.Value.Value),
			Becomes: journal.Path(v.Becomes)})
	}
	return neighbours
}

// restoreBeside gives the files beside a write that was cut off the values that they had before it, where they have the one
// that such a write gives them: any other is another program's, such as a resize since. A cgroup that is another one by now
// has none of them.
func (r *run) restoreBeside() error {
	w, cut := r.j.State().CutOff()
	if !cut || len(w.Beside) == 0 || w.Boot != r.BootID {
		return nil
	}
	path := string(w.Path)
	for _, b := range w.Beside {
		id, err := r.FS.ID(w.Controller, path)
		if errors.Is(err, cgroup.ErrNoCgroup) || err == nil && id != w.ID {
			return nil
		}
		now, readErr := r.FS.Read(b.Controller, path, b.File)
		if err = errors.Join(err, readErr); err != nil {
			return err
		}
		if b.Becomes == "" || !change.Same(b.File, now, string(b.Becomes)) || change.Same(b.File, now, string(b.Value)) {
			continue
		}
		r.warn("an interrupted write to %s left %s at %q, and it was %q: put back", text.Name(path), b.File, now, string(b.Value))
		if err := r.FS.Write(b.Controller, path, b.File, string(b.Value)); err != nil {
			return err
		}
	}
	return nil
}
