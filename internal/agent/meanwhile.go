package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// meanwhile runs what takes long, such as a fix, and moves newcomers off exclusive CPUs until it is done. The rest of what
// the acting goroutine does waits, because it would change what is being judged. Of that goroutine alone.
func (a *agent) meanwhile(ctx context.Context, what string, limit time.Duration, run func()) {
	defer a.resume(a.busy(what, limit))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.spent.Do(spent.Acting, run)
	}()
	for {
		select {
		case <-done:
			return
		case <-a.wake:
			newcomers := a.newcomersCame()
			if newcomers {
				a.moveNewcomers(ctx)
			}
			a.starts(ctx, newcomers)
		}
	}
}

// newcomersCame reports whether newcomers are to be looked after now. A look counts as a round only where half an interval has passed since
// the last that did: what else wakes the agent, such as the next of several starts, takes no round from a newcomer.
func (a *agent) newcomersCame() bool {
	now := a.time()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newcomers == 0 {
		return false
	}
	if now.Sub(a.newcomersAt) >= a.Rules.Interval/2 {
		a.newcomers--
		a.newcomersAt = now
	}
	return true
}

// moveNewcomers moves containers that appeared off exclusive CPUs, and does no other reconciliation.
func (a *agent) moveNewcomers(ctx context.Context) {
	if a.Rules.Mode != policy.Apply {
		return
	}
	held, err := a.held()
	if err != nil {
		a.Log.Error("the journal cannot be read", "error", err)
		return
	}
	// While a transaction is being written, what is there now is no basis for a plan.
	if len(held) == 0 || slices.ContainsFunc(held, func(f txn.InForce) bool { return f.Unfinished }) {
		return
	}
	_, due, ok := a.due(ctx)
	if !ok {
		return
	}
	for _, c := range due {
		if !c.Gone && c.Newcomers {
			a.carryOut(ctx, c)
		}
	}
}

// stale reports whether a plan failed because another writer, such as one that moved newcomers, came between.
func stale(err error) bool { return errors.As(err, new(*apply.Stale)) }

// staleRetry is how soon a fix is tried again whose plan was overtaken.
const staleRetry = 5 * time.Second
