package agent

import (
	"context"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// leaveToAutoscalers takes back limits that the agent raised in the specs of pods which an autoscaler resizes by now, and tells whether
// there were any. An autoscaler keeps the ratio of limit to request that it finds, so that a raise would stay in every later limit.
func (a *agent) leaveToAutoscalers(ctx context.Context, held []txn.InForce) (acted bool) {
	for _, h := range held {
		if h.By != a.chooser.by || h.Trial != nil || h.Unfinished || !inPod(h) || !a.mayTakeBack(h) {
			continue
		}
		by := a.autoscalerOf(ctx, h)
		if by == "" {
			continue
		}
		log := a.Log.With("container", text.Sanitize(h.Name, 128), "remedy", h.Remedy, "transaction", h.ID, "autoscaler",
			text.Sanitize(by, text.MaxName))
		if _, err := a.takeBack(ctx, h); err != nil {
			log.Error("a limit of a pod that an autoscaler resizes by now could not be taken back; run unthrottle restore", "error", err)
			continue
		}
		acted = true
		log.Info("taken back: an autoscaler resizes the pod by now")
	}
	return acted
}

// autoscalerOf names the autoscaler that resizes a pod whose spec a transaction has changed; "": none, or it is not known.
func (a *agent) autoscalerOf(ctx context.Context, h txn.InForce) string {
	if a.Env.Pods == nil {
		return ""
	}
	by := ""
	_ = a.patiently(h, "asking for the autoscaler of", func() error { // what fails is asked again later
		for _, c := range h.Changes {
			if c.Kind != change.KindPodCPU || by != "" {
				continue
			}
			now, err := a.Env.Pods.Read(ctx, c.Unit)
			if err != nil {
				return err
			}
			by = now.Autoscaler
		}
		return nil
	})
	return by
}
