package agent

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// undoEnded takes back what the agent applied to containers whose rule has ended. What is on trial ends with its trial.
func (a *agent) undoEnded(ctx context.Context, held []txn.InForce, now time.Time) {
	for _, h := range held {
		rule := a.chooser.known(h.Target)
		if rule == nil || !rule.Ended(now) || h.By != a.chooser.by || h.Trial != nil || !a.mayTakeBack(h) {
			continue
		}
		log := a.Log.With("container", text.Sanitize(h.Name, 128), "remedy", h.Remedy, "transaction", h.ID, "policy",
			text.Sanitize(rule.Policy, text.MaxName), "until", rule.Until)
		if _, err := a.takeBack(ctx, h); err != nil {
			log.Error("what a rule applied that has ended could not be taken back; run unthrottle restore", "error", err)
			continue
		}
		log.Info("taken back: its rule has ended")
	}
}
