package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// writeBack does the steps of the way back. A step that fails leaves its transactions open and the others go on.
func (r *run) writeBack(ctx context.Context, b *rollbackPlan) error {
	for _, c := range r.orderBack(b) {
		if err := ctx.Err(); err != nil {
			return err
		}
		owners := b.owners[c.Key()]
		why, err := r.putBack(ctx, owners[0], c)
		switch {
		case err == nil && why != "":
			b.noteSkipped(owners, c, why)
			r.skip(c.Path, c.File, why)
		case err == nil:
		case errors.As(err, new(journalFailed)):
			return err
		case c.Kind == change.KindSched && errors.Is(err, fs.ErrNotExist):
			// The thread ended: nothing is left of it.
		case errors.Is(err, cgroup.ErrNoCgroup):
			b.noteSkipped(owners, c, whyGone)
			r.skip(c.Path, c.File, whyGone)
		default:
			r.keepInForce(b, c, err.Error())
		}
	}
	return nil
}

// orderBack is the steps in the order in which the kernel takes them. What cannot be ordered stays in force.
func (r *run) orderBack(b *rollbackPlan) []change.Change {
	steps, impossible := change.OrderPossible(r.orderState(b.changes), b.changes)
	for _, l := range impossible {
		r.keepInForce(b, l.Change, fmt.Sprintf(whyImpossible, l.Err))
	}
	return steps
}

// putBack does one step, or what comes nearest to it and why.
func (r *run) putBack(ctx context.Context, id string, c change.Change) (why string, err error) {
	err = r.step(ctx, id, c)
	if errors.As(err, new(journalFailed)) || !r.cannotClear(c, err) {
		return "", err
	}
	return WhyNotCleared, r.inherit(ctx, id, c)
}

// keepInForce leaves a setting in force: its transactions stay open, and a later restore tries again.
func (r *run) keepInForce(b *rollbackPlan, c change.Change, why string) {
	r.skip(c.Path, c.File, why)
	r.left = append(r.left, txn.Skip{Path: c.Path, File: c.File, Why: why})
	for _, id := range b.owners[c.Key()] {
		b.left[id] = true
	}
}

// noteSkipped keeps in the journal why a setting of some transactions was not put back.
func (b *rollbackPlan) noteSkipped(owners []string, c change.Change, why string) {
	for _, id := range owners {
		b.skipped[id] = append(b.skipped[id], journal.Skipped{Path: journal.Path(c.Path), File: c.File, Why: why})
	}
}

// cannotClear recognises the kernel's refusal of an empty list.
func (r *run) cannotClear(c change.Change, err error) bool {
	return c.Kind == change.KindFile && change.IsList(c.File) && c.To == "" && r.version(c.Controller) == cgroup.V2 &&
		errors.Is(err, unix.ENOSPC)
}

// inherit gives a cgroup whose list cannot be cleared all that its parent has, which an empty list stands for: also what other
// transactions keep from the parent for now, as it comes back there with their rollback, and nothing would bring it here.
func (r *run) inherit(ctx context.Context, id string, c change.Change) error {
	parent := c.Key()
	parent.Path = cgroup.Parent(c.Path)
	all, err := r.base(r.j.State(), parent, "")
	if err != nil || change.Same(c.File, c.From, all) {
		return err
	}
	c.To = all
	return r.step(ctx, id, c)
}
