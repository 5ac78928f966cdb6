package agent

import (
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// makeRoom lowers bursts of ours to a limit that a container's owner is about to write: see nri.Resized. It runs on the runtime's
// goroutine, beside whatever the agent does.
func (a *agent) makeRoom(ctx context.Context, at func(path string) bool, want cgroup.Limit) []cgroup.Value {
	held, err := apply.Status(a.Env)
	if err != nil {
		a.Log.Error("the journal cannot be read, so that a resize may be refused", "error", err)
		return nil
	}
	held = slices.DeleteFunc(held, func(f txn.InForce) bool { return f.Unfinished })
	parts := remedy.BurstsAbove(held, at, want, func(path string) (cgroup.Limit, bool) {
		l, err := cgroup.ReadLimit(a.Direct, path)
		return l, err == nil
	})
	if len(parts) == 0 {
		return nil
	}
	env := a.Env
	env.FS = a.Direct
	done, err := apply.Replace(ctx, env, parts)
	if err != nil {
		a.Log.Warn("a burst could not be lowered for a resize, which the kernel may refuse", "error", err)
		return nil
	}
	var lowered []cgroup.Value
	for _, w := range done.Writes {
		if w.Done && cgroup.IsBurst(w.File) {
			lowered = append(lowered, cgroup.Value{Controller: w.Controller, Path: w.Path, File: w.File, Value: w.After})
		}
	}
	a.signal()
	return lowered
}
