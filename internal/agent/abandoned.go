package agent

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// undoTime bounds what the agent undoes when it ends.
const undoTime = 30 * time.Second

// recover rolls back what a process that ended left half done or on trial. It reports whether anything was.
func (a *agent) recover(ctx context.Context) bool {
	if a.Rules.Mode != policy.Apply {
		return false
	}
	defer a.resume(a.busy("rolling back what a process left behind", startLimit))
	back, err := apply.Recover(ctx, a.Env)
	for _, text := range back.Warnings {
		a.Log.Warn("rolling back", "note", text)
	}
	if err != nil && ctx.Err() == nil {
		a.Log.Warn("what a process left behind could not be rolled back", "error", err)
	}
	return len(back.Writes) > 0
}

// endTrials undoes what is still on trial when the agent ends: nothing would judge it.
func (a *agent) endTrials(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	left, err := apply.WouldLeave(a.Env)
	var ids []string
	for _, f := range left {
		if f.Trial != nil {
			ids = append(ids, f.ID)
		}
	}
	if err == nil && len(ids) > 0 {
		_, err = apply.Restore(ctx, a.Env, apply.Selector{IDs: ids})
	}
	if err != nil {
		a.Log.Warn("what is on trial could not be undone; run unthrottle restore", "error", err)
	}
}
