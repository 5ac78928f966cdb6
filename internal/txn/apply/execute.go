package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// run does steps one by one, each journalled before it is done and read back after.
type run struct {
	world
	j *journal.Journal
	// ids are the cgroups' ids by setting, as far as they existed when the steps were planned.
	ids map[change.Key]uint64
	res *Result
	// left are the settings that the kernel did not let us restore. They stay in force.
	left []txn.Skip
	// again is Selector.Again.
	again bool
	// reasons are why single transactions end, where those that are released together end for several reasons.
	reasons map[string]string
}

// start opens the journal for writing, and ends what a write that was cut off left beside it; the caller closes the journal.
func start(ctx context.Context, env Env) (*run, error) {
	j, err := env.open(ctx)
	if err != nil {
		return nil, err
	}
	res := newResult()
	r := &run{world: world{env}, j: j, res: &res}
	if err := r.restoreBeside(); err != nil {
		return nil, errors.Join(fmt.Errorf("ending a write that was interrupted: %w", err), j.Close())
	}
	return r, nil
}

// journalFailed marks an error of the journal: nothing may be written any more.
type journalFailed struct{ error }

func (e journalFailed) Unwrap() error { return e.error }

// step journals, does and reads back one step.
func (r *run) step(ctx context.Context, id string, c change.Change) error {
	k := c.Key()
	n := r.j.Next()
	w := journal.Write{N: n, Txn: id, Time: r.now(), By: r.By, Setting: r.inJournal(k, r.ids[k]),
		Before: journal.Path(c.From), Want: journal.Path(change.Canonical(c.File, c.To))}
	if c.Kind == change.KindTask || c.Kind == change.KindCgroup {
		w.Want = journal.Path(c.To)
	}
	w.Beside = r.beside(c)
	if err := r.j.Append(true, journal.Record{Write: &w}); err != nil {
		return journalFailed{err}
	}
	err := r.kind(c.Kind).write(ctx, c)
	at := len(r.res.Writes)
	r.res.Writes = append(r.res.Writes, writeOf(c))
	done := journal.Done{N: n}
	after, readErr := r.read(ctx, k)
	if readErr != nil {
		// Not known what is there now: without a Done both values count as ours.
		return errors.Join(err, readErr)
	}
	done.Value = journal.Path(after)
	if c.Kind == change.KindTask {
		done.Value = journal.Path(c.To)
	}
	if err != nil {
		done.Error = err.Error()
	}
	if c.Kind == change.KindCgroup && after == change.Present {
		if done.ID, readErr = r.FS.ID(c.Controller, c.Path); readErr != nil {
			return errors.Join(err, readErr)
		}
		r.setCgroupID(c, done.ID)
	}
	// Not forced to disk: losing it costs precision, not safety.
	if jErr := r.j.Append(false, journal.Record{Done: &done}); jErr != nil {
		return errors.Join(err, journalFailed{jErr})
	}
	if err != nil {
		return err
	}
	r.res.Writes[at].Done = true
	r.log().Debug("written", "setting", k.String(), "before", c.From, "after", after)
	if c.Kind != change.KindTask && !change.Same(c.File, after, c.To) {
		r.warn("%s: wrote %q, the kernel shows %q", k, c.To, after)
	}
	return nil
}

// setCgroupID notes the id of a cgroup just created for the settings inside it.
func (r *run) setCgroupID(c change.Change, id uint64) {
	for k := range r.ids {
		if r.ids[k] == 0 && k.Kind != change.KindSystemd && k.Kind != change.KindCgroup &&
			r.sameTree(k.Controller, c.Controller) && k.Path == c.Path {
			r.ids[k] = id
		}
	}
}

// ignorableStepError reports a step whose failure is no reason to undo the transaction, and notes it.
func (r *run) ignorableStepError(c change.Change, err error) bool {
	if errors.As(err, new(journalFailed)) {
		return false
	}
	note, ok := r.kind(c.Kind).ignorable(c, err)
	if note != "" {
		r.skip("/proc/irq", c.File, note)
	}
	return ok
}

func (r *run) warn(format string, args ...any) {
	r.res.Warnings = append(r.res.Warnings, fmt.Sprintf(format, args...))
}
