package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// makeRoom takes back limits in a period of ours, and lowers bursts of ours to a limit that a container's owner is about to write: see
// nri.Resized. It runs on the runtime's goroutine, beside whatever the agent does.
func (a *agent) makeRoom(ctx context.Context, at func(path string) bool, want cgroup.Limit) []cgroup.Value {
	held, err := apply.Status(a.Env)
	if err != nil {
		a.Log.Error("the journal cannot be read, so that a resize may be refused", "error", err)
		return nil
	}
	env := a.Env
	env.FS = a.Direct
	var lowered []cgroup.Value
	if ids := remedy.OtherPeriods(held, at); len(ids) > 0 {
		done, err := apply.Restore(ctx, env, apply.Selector{IDs: ids})
		if err != nil {
			a.Log.Warn("a limit in another period could not be taken back for a resize, which the kernel may refuse", "error", err)
		} else {
			a.Log.Info("a limit in another period was taken back for a resize", "transactions", strings.Join(ids, " "))
		}
		lowered = burstsOf(done)
		held = slices.DeleteFunc(held, func(f txn.InForce) bool { return slices.Contains(ids, f.ID) })
		a.signal()
	}
	held = slices.DeleteFunc(held, func(f txn.InForce) bool { return f.Unfinished })
	parts := remedy.BurstsAbove(held, at, want, func(path string) (cgroup.Limit, bool) {
		l, err := cgroup.ReadLimit(a.Direct, path)
		return l, err == nil
	})
	if len(parts) == 0 {
		return lowered
	}
	done, err := apply.Replace(ctx, env, parts)
	if err != nil {
		a.Log.Warn("a burst could not be lowered for a resize, which the kernel may refuse", "error", err)
		return lowered
	}
	a.signal()
	return append(lowered, burstsOf(done)...)
}

// burstsOf are the bursts that were written.
func burstsOf(done apply.Result) (bursts []cgroup.Value) {
	for _, w := range done.Writes {
		if w.Done && cgroup.IsBurst(w.File) {
			bursts = append(bursts, cgroup.Value{Controller: w.Controller, Path: w.Path, File: w.File, Value: w.After})
		}
	}
	return bursts
}
