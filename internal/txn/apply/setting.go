package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// setting is what one kind of setting can do. Each kind has a file of its own, and is the only one that knows how its
// values are read and written. A new kind is a new implementation and one line in world.kind.
type setting interface {
	// normalise fills in what the kind implies, and refuses a change that names no setting.
	normalise(c change.Change) (change.Change, error)
	// touched are the cgroups that a change touches and that must lie in Env.Scope.
	touched(c change.Change) []string
	// possible finds out before the first write whether the change must be refused.
	possible(ctx context.Context, c change.Change) error
	// read is the present value.
	read(ctx context.Context, k change.Key) (string, error)
	// write does one step.
	write(ctx context.Context, c change.Change) error
	// id tells the object that has the setting from a later one under the same name; 0: the kind has none.
	id(k change.Key) (uint64, error)
	// identity is why the object is no longer the one that was changed, "" if it is. made is the id that the object got
	// when a transaction created it, 0 if it is not known.
	identity(s journal.Setting, made uint64) (why string, err error)
	// exists reports whether the object that was changed is still there.
	exists(s journal.Setting) (bool, error)
	// ended reports an object that ended by itself, so that a rollback has nothing to do.
	ended(s journal.Setting) (bool, error)
	// ignorable reports a failed step that is no reason to undo the transaction, and what to note of it ("": nothing).
	ignorable(c change.Change, err error) (note string, ok bool)
	// usedByOthers reports whether a rollback would destroy what other programs set since.
	usedByOthers(st *journal.State, s journal.Setting) (bool, error)
	// inside is what exists because of the setting: a new cgroup, or the files below one.
	inside(k change.Key) (tree, bool)
	traits() traits
}

// traits are facts about a kind.
type traits struct {
	// valued: the setting has a value of its own, which several transactions may share and others may overwrite.
	valued bool
	// stale: a plan is refused when the value is not what it was when planned.
	stale bool
	// short: the object ends by itself, as interrupts and threads do. That is no drift.
	short bool
	// lasting: the setting outlives the boot.
	lasting bool
}

// kind gives the implementation of a kind of setting.
func (w world) kind(k change.Kind) setting {
	base := inCgroup{w}
	switch k {
	case change.KindFile:
		return file{base}
	case change.KindSystemd:
		return unitProperty{base}
	case change.KindCgroup:
		return createdCgroup{base}
	case change.KindTask:
		return processes{base}
	case change.KindSubtree:
		return subtreeControl{base}
	case change.KindIRQ:
		return interrupt{base}
	case change.KindSched:
		return policy{base}
	case change.KindWidth:
		return width{base}
	case change.KindPodCPU:
		return podCPU{base}
	}
	return unknown{base, k}
}

// inCgroup is what most kinds have in common: their object is a cgroup.
type inCgroup struct{ world }

func (inCgroup) normalise(c change.Change) (change.Change, error) { return c, nil }

func (inCgroup) touched(c change.Change) []string { return []string{c.Path} }

func (inCgroup) possible(context.Context, change.Change) error { return nil }

func (s inCgroup) id(k change.Key) (uint64, error) { return s.FS.ID(k.Controller, k.Path) }

func (s inCgroup) identity(of journal.Setting, _ uint64) (string, error) {
	return s.sameCgroup(of, of.ID)
}

// sameCgroup compares a cgroup's id with the one that is known, 0 if it is not.
func (s inCgroup) sameCgroup(of journal.Setting, known uint64) (why string, err error) {
	id, err := s.FS.ID(of.Controller, string(of.Path))
	switch {
	case errors.Is(err, cgroup.ErrNoCgroup):
		return whyGone, nil
	case err != nil:
		return "", err
	case known != 0 && known != id:
		return whyRecreated, nil
	}
	return "", nil
}

func (s inCgroup) exists(of journal.Setting) (bool, error) {
	why, err := s.sameCgroup(of, of.ID)
	return why == "" && err == nil, err
}

func (inCgroup) ended(journal.Setting) (bool, error) { return false, nil }

func (inCgroup) ignorable(change.Change, error) (string, bool) { return "", false }

func (inCgroup) usedByOthers(*journal.State, journal.Setting) (bool, error) { return false, nil }

func (inCgroup) inside(change.Key) (tree, bool) { return tree{}, false }

func (inCgroup) traits() traits { return traits{} }

// unknown is a kind that a later version wrote.
type unknown struct {
	inCgroup
	kind change.Kind
}

func (u unknown) normalise(c change.Change) (change.Change, error) {
	return c, fmt.Errorf("cgroup %q: unknown kind of change %q", c.Path, c.Kind)
}

func (u unknown) read(_ context.Context, k change.Key) (string, error) {
	return "", fmt.Errorf("%s: unknown kind %q", k, u.kind)
}

func (u unknown) write(_ context.Context, c change.Change) error {
	return fmt.Errorf("%s: unknown kind %q", c.Key(), u.kind)
}
