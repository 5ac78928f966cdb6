package agent

import (
	"context"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// reconcile looks after what is in force. In observe mode they only count and judge.
func (a *agent) reconcile(ctx context.Context) {
	held, err := a.held()
	if err != nil {
		a.Log.Error("the journal cannot be read", "error", err)
		return
	}
	a.count(held)
	if slices.ContainsFunc(held, func(f txn.InForce) bool { return f.Trial.Lost() }) && a.recover(ctx) {
		return // the next time sees what is in force then
	}
	if len(held) == 0 {
		a.placer.figures.none()
		a.placer.forget(hoststate.Facts{}, time.Now())
		return
	}
	if a.Rules.Mode == policy.Apply && a.leaveToAutoscalers(ctx, held) {
		return // the next time sees what is in force then
	}
	facts, due, ok := a.due(ctx)
	if !ok {
		return
	}
	acted := false
	for _, c := range due {
		acted = acted || !c.Gone && len(c.Plan.Changes) > 0
		switch {
		case a.Rules.Mode != policy.Apply:
		case c.Gone:
			acted = a.takeBackGone(ctx, c.ID) || acted
		default:
			a.carryOut(ctx, c)
		}
	}
	if acted && a.Rules.Mode == policy.Apply {
		return // the facts are out of date: the placement's turn is next time
	}
	a.place(ctx, facts, time.Now())
}

// due is what the transactions in force need by now, and the facts that say so; ok
// is false, and the log says why, if that cannot be told.
func (a *agent) due(ctx context.Context) (facts hoststate.Facts, due []remedy.Reconciliation, ok bool) {
	containers, err := a.List()
	if err != nil {
		a.Log.Warn("containers cannot be listed", "error", err)
		return facts, nil, false
	}
	// Chores need no measured use: they give no CPU away that was not given before.
	if facts, err = a.Facts(ctx, containers, map[string]float64{}); err != nil {
		a.Log.Warn("the transactions in force cannot be reconciled", "error", err)
		return facts, nil, false
	}
	if due, err = remedy.Reconcile(facts); err != nil {
		a.Log.Error("the transactions in force cannot be reconciled", "error", err)
		return facts, nil, false
	}
	return facts, due, true
}

// carryOut does what is due for a container that is there.
func (a *agent) carryOut(ctx context.Context, c remedy.Reconciliation) {
	for _, text := range c.Plan.Warnings {
		a.Log.Debug("exclusive CPUs", "transaction", c.ID, "note", text)
	}
	if len(c.Plan.Changes) == 0 {
		return
	}
	done, err := apply.Replace(ctx, a.Env, []txn.Part{c.Plan.Part()})
	if stale(err) {
		a.Log.Debug("newcomers are moved off exclusive CPUs with the next round", "transaction", c.ID, "why", err)
		return
	}
	if err != nil {
		a.Log.Warn("newcomers could not be moved off exclusive CPUs", "transaction", c.ID, "error", err)
		return
	}
	for _, text := range done.Warnings {
		a.Log.Warn("exclusive CPUs", "transaction", c.ID, "note", text)
	}
	a.Log.Info(c.Does, "transaction", c.ID, "writes", len(done.Writes))
}

// held is what is in force. The journal is read again only when it has changed.
// Only the acting goroutine calls it.
func (a *agent) held() ([]txn.InForce, error) {
	stamp, err := apply.Stamp(a.Env)
	if err != nil {
		return nil, err
	}
	if onTrial := func(f txn.InForce) bool { return f.Trial != nil }; stamp == a.heldStamp && a.heldStamp != "" &&
		!slices.ContainsFunc(a.heldNow, onTrial) { // a trial changes with the process that judges it
		return a.heldNow, nil
	}
	held, err := apply.Status(a.Env)
	if err != nil {
		return nil, err
	}
	a.heldStamp, a.heldNow, a.historyRead = stamp, held, false
	a.mu.Lock()
	a.heldShown = held
	a.mu.Unlock()
	return held, nil
}

// count refreshes what is exported about the journal.
func (a *agent) count(held []txn.InForce) {
	if !a.historyRead {
		past, err := apply.History(a.Env, 0)
		if err != nil {
			a.Log.Error("the journal cannot be read", "error", err)
			return
		}
		a.journal.set(held, past)
		a.historyRead = true
	}
	drift, err := apply.Drift(a.Env)
	if err != nil {
		a.Log.Warn("drift cannot be told", "error", err)
		return
	}
	a.journal.setDrift(len(drift))
	counted := slices.Clone(held)
	apply.CountWidths(a.Env, counted)
	a.narrow.set(counted)
}
