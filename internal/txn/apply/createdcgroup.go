package apply

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// createdCgroup is a cgroup that a transaction creates and its rollback removes.
type createdCgroup struct{ inCgroup }

func (createdCgroup) normalise(c change.Change) (change.Change, error) {
	c.From, c.To = "", change.Present
	return c, nil
}

func (g createdCgroup) read(_ context.Context, k change.Key) (string, error) {
	if _, err := g.FS.ID(k.Controller, k.Path); errors.Is(err, cgroup.ErrNoCgroup) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return change.Present, nil
}

func (g createdCgroup) write(ctx context.Context, c change.Change) error {
	if c.To == change.Present {
		return g.FS.Make(c.Controller, c.Path)
	}
	return g.remove(ctx, c)
}

func (createdCgroup) id(change.Key) (uint64, error) { return 0, nil }

func (g createdCgroup) identity(s journal.Setting, made uint64) (string, error) {
	why, err := g.sameCgroup(s, made)
	if why == whyGone {
		why = ""
	}
	return why, err
}

func (createdCgroup) inside(k change.Key) (tree, bool) {
	return tree{controller: k.Controller, path: k.Path}, true
}

// remove removes a cgroup; the kernel says EBUSY for a moment after the last process has left.
func (w createdCgroup) remove(ctx context.Context, c change.Change) error {
	for try := 0; ; try++ {
		err := w.FS.Remove(c.Controller, c.Path)
		if err == nil || errors.Is(err, cgroup.ErrNoCgroup) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || try == removeRetries {
			return err
		}
		pause(ctx)
		if ctx.Err() != nil {
			return err
		}
	}
}
