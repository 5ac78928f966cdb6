package fix

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
)

// Apply applies the remedy of o.Wish.Request without a finding, a forecast or a question, and records the effect. It is undone only where
// others pay for it: those that lend it CPUs, or those for whose sake it was applied. Errors leave nothing half done, as those of Run.
func Apply(ctx context.Context, env Env, o Options) (Result, error) {
	r := newRun(env, o)
	if !o.DryRun {
		if err := r.recover(ctx); err != nil {
			return r.res, err
		}
	}
	err := r.applyAsked(ctx)
	if r.res.ID == "" && !o.DryRun {
		r.res.Verdict = VerdictNotApplied
	}
	return r.res, err
}

func (r *run) applyAsked(ctx context.Context) error {
	changed, err := r.look(ctx, false)
	if err != nil {
		return err
	}
	if changed != "" {
		r.say("%s: nothing is compared with the time before", changed)
	}
	request := r.o.Wish.Request
	observed := policy.Observed(r.own)
	request.Observed = &observed
	plan, err := remedy.Make(r.facts, r.o.Target, request)
	if err != nil {
		return err
	}
	if err := r.show(policy.Proposal{Plan: &plan, Request: request, Why: string(request.Kind) +
		" was asked for"}); err != nil || r.o.DryRun {
		return err
	}
	r.onTrial = len(plan.Lenders) > 0 || r.forOthers() && r.env.Latencies != nil
	if written, err := r.write(ctx); err != nil || !written {
		return err
	}
	switch err := r.judge(ctx); {
	case err != nil && r.onTrial && ctx.Err() != nil:
		return r.undoUnmeasured(ctx, err)
	case err != nil && !r.res.Kept:
		return err
	case err != nil:
		r.res.Warnings = append(r.res.Warnings, "its effect was not measured: "+err.Error())
		return r.keep(ctx)
	}
	r.record()
	j := r.res.Judgement
	switch {
	case len(plan.Lenders) > 0 && (j.Verdict == verdict.Worse || len(j.Harmed) > 0):
		return r.undo(ctx, fmt.Sprintf("who lends it CPUs got worse: %.400q (%s)", j.Harmed, j.Why))
	case r.forOthers() && j.Verdict == verdict.Worse:
		return r.undo(ctx, j.Verdict+": "+j.Why)
	}
	return r.keep(ctx)
}
