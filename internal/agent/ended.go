package agent

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// undoEnded takes back what the agent applied to containers whose rule has ended. What is on trial ends with its trial, and what guards a
// pin that somebody else made stays as long as that.
func (a *agent) undoEnded(ctx context.Context, held []txn.InForce, now time.Time) {
	others := map[string]bool{} // transactions of somebody else
	for _, h := range held {
		others[h.ID] = h.By != a.chooser.by
	}
	for _, h := range held {
		rule := a.chooser.known(h.Target)
		if rule == nil || !rule.Ended(now) || h.By != a.chooser.by || h.Trial != nil || others[h.Parameters[remedy.ParamUpkeep]] ||
			!a.mayTakeBack(h) {
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
