package fix

import (
	"context"
	"slices"

	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// ConfineSystem keeps the host's own slices on the reserve, see remedy.ConfineSystem.
// Where they are kept there already, the reserve follows what they use by now. facts
// looks at the host; with dryRun nothing is changed.
func ConfineSystem(ctx context.Context, env apply.Env, facts func(context.Context) (hoststate.Facts, error),
	request remedy.Request, dryRun bool) (apply.Result, error) {
	var recovered apply.Result
	if !dryRun {
		var err error
		if recovered, err = apply.Recover(ctx, env); err != nil {
			return recovered, err
		}
	}
	f, err := facts(ctx)
	if err != nil {
		return apply.Result{}, err
	}
	plan, err := remedy.ConfineSystem(f, request)
	if err != nil {
		return apply.Result{}, err
	}
	var result apply.Result
	switch parts := []txn.Part{plan.Part()}; {
	case len(plan.Changes) == 0:
		result = apply.Result{Writes: []apply.Write{}, Skipped: []txn.Skip{}, Verdict: apply.VerdictNothing}
	case dryRun:
		result, err = apply.PlanReplace(env, parts)
	default:
		result, err = apply.Replace(ctx, env, parts)
	}
	result.Warnings = slices.Concat(recovered.Warnings, plan.Warnings, result.Warnings)
	result.Skipped = append(slices.Clone(plan.Skipped), result.Skipped...)
	return result, err
}
