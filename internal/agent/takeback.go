package agent

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// takeBackRetry is after how long a change in a pod's spec is tried again that could not be taken back, or asked about.
const takeBackRetry = 5 * time.Minute

// takingBack paces what the agent does with its changes in pods' specs, for which it may have to wait: for the kubelet, and for an answer
// that does not come. Of the acting goroutine alone.
type takingBack struct {
	retry map[string]time.Time // by transaction that failed: not before
	next  time.Time            // no other before
}

// inPod tells whether a transaction is in a pod's spec.
func inPod(h txn.InForce) bool {
	return slices.ContainsFunc(h.Changes, func(c change.Change) bool { return c.Kind == change.KindPodCPU })
}

// mayTakeBack tells whether a transaction may be taken back in this round. After one that took longer than a round, the others in pods'
// specs wait for the next: newcomers must not wait for all of them.
func (a *agent) mayTakeBack(h txn.InForce) bool {
	now := a.time()
	return !inPod(h) || !now.Before(a.back.next) && !now.Before(a.back.retry[h.ID])
}

// takeBack restores one transaction.
func (a *agent) takeBack(ctx context.Context, h txn.InForce) (back apply.Result, err error) {
	err = a.patiently(h, "taking back what is in force for", func() (err error) {
		back, err = apply.Restore(ctx, a.Env, apply.Selector{IDs: []string{h.ID}})
		return err
	})
	return back, err
}

// patiently does what may have to wait for the kubelet, or for an answer about a pod: that may take as long as a start, and is no round
// that hangs.
func (a *agent) patiently(h txn.InForce, what string, do func() error) error {
	defer a.resume(a.busy(what+" "+boundedPath(h.Target), startLimit))
	began := a.time()
	err := do()
	if !inPod(h) {
		return err
	}
	now := a.time()
	if now.Sub(began) > a.Rules.Interval {
		a.back.next = now.Add(a.Rules.Interval)
	}
	maps.DeleteFunc(a.back.retry, func(_ string, at time.Time) bool { return !now.Before(at) })
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if a.back.retry == nil {
		a.back.retry = map[string]time.Time{}
	}
	after := takeBackRetry
	if apply.Passing(err) {
		after = staleRetry
	}
	a.back.retry[h.ID] = now.Add(after)
	return err
}

// inForce is a transaction as it was read last; one that was not has nothing but its ID.
func (a *agent) inForce(id string) txn.InForce {
	if i := slices.IndexFunc(a.heldNow, func(f txn.InForce) bool { return f.ID == id }); i >= 0 {
		return a.heldNow[i]
	}
	return txn.InForce{ID: id}
}

// takeBackGone restores the transaction of a container that is gone, and tells whether its turn had come.
func (a *agent) takeBackGone(ctx context.Context, id string) bool {
	h := a.inForce(id)
	if !a.mayTakeBack(h) {
		return false
	}
	back, err := a.takeBack(ctx, h)
	if err != nil {
		a.Log.Warn("the transaction of a container that is gone could not be restored", "transaction", id, "error", err)
		return true
	}
	for _, text := range back.Warnings {
		a.Log.Warn("putting back", "transaction", id, "note", text)
	}
	a.Log.Info("its container is gone: its changes are restored", "transaction", id)
	return true
}
