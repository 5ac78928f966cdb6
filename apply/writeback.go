package apply

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/change"
	"github.com/unthrottle/unthrottle/journal"
)

// writeBack does the steps of the way back. A step that fails leaves its transactions open and the others go on.
func (r *run) writeBack(ctx context.Context, b *wayBack) error {
	steps, err := change.Order(r.orderState(b.changes), b.changes)
	if err != nil {
		return err
	}
	for _, c := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		owners := b.owners[c.Key()]
		err := r.step(ctx, owners[0], c)
		switch {
		case err == nil:
		case errors.As(err, new(journalFailed)):
			return err
		case c.Kind == change.KindSched && errors.Is(err, fs.ErrNotExist):
			// The thread ended: nothing is left of it.
		case errors.Is(err, cgroup.ErrNoCgroup):
			b.note(owners, c, WhyGone)
			r.skip(c.Path, c.File, WhyGone)
		case r.cannotClear(c, err):
			if err := r.inherit(ctx, owners[0], c); err != nil {
				return err
			}
			b.note(owners, c, WhyNotCleared)
			r.skip(c.Path, c.File, WhyNotCleared)
		default:
			r.skip(c.Path, c.File, err.Error())
			for _, id := range owners {
				b.left[id] = true
			}
		}
	}
	return nil
}

// note keeps in the journal why a setting of some transactions was not put back.
func (b *wayBack) note(owners []string, c change.Change, why string) {
	for _, id := range owners {
		b.skipped[id] = append(b.skipped[id], journal.Skipped{Path: journal.Path(c.Path), File: c.File, Why: why})
	}
}

// cannotClear recognises the kernel's refusal of an empty list.
func (r *run) cannotClear(c change.Change, err error) bool {
	return c.Kind == change.KindFile && change.IsList(c.File) && c.To == "" && r.version(c.Controller) == cgroup.V2 &&
		errors.Is(err, unix.ENOSPC)
}

// inherit gives a cgroup whose list cannot be cleared all that its parent has: what an empty list stands for.
func (r *run) inherit(ctx context.Context, txn string, c change.Change) error {
	inForce := cgroup.CPUs
	if c.File == cgroup.FileMems {
		inForce = cgroup.Mems
	}
	_, all, err := inForce(r.FS, cgroup.Parent(c.Path))
	if err != nil || change.Same(c.File, c.From, all.String()) {
		return err
	}
	c.To = all.String()
	return r.step(ctx, txn, c)
}
