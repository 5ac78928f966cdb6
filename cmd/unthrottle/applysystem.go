package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/topology"
)

// systemFlags are the flags that mean something beside --system.
var systemFlags = []string{"system", "reserve", "scope", "state-dir", "verbose", "dry-run", "json"}

// confineSystem keeps the host's own slices on the reserve; where they are kept
// there already, the reserve follows what they use by now.
func confineSystem(cmd *cobra.Command, w *writeFlags, reserve string, dryRun bool) (apply.Result, error) {
	var none apply.Result
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(systemFlags, f.Name) {
			wrong = fmt.Errorf("--%s is a setting of a remedy for a TARGET, not of --system", f.Name)
		}
	})
	if wrong != nil {
		return none, wrong
	}
	if err := notEmpty(cmd, "reserve"); err != nil {
		return none, err
	}
	var request remedy.Request
	if reserve != "" {
		set, err := topology.ParseList(reserve)
		if err != nil {
			return none, fmt.Errorf("--reserve %s: %w", reserve, err)
		}
		request.Reserve = &set
	}
	h, err := openCgroups()
	if err != nil {
		return none, err
	}
	env, done, err := w.env(cmd, h)
	if err != nil {
		return none, err
	}
	defer done()
	var recovered apply.Result
	if !dryRun {
		if recovered, err = apply.Recover(cmd.Context(), env); err != nil {
			return recovered, err
		}
	}
	all, err := list(h, "")
	if err != nil {
		return none, err
	}
	facts, err := w.facts(cmd.Context(), h, env, all, nil)
	if err != nil {
		return none, err
	}
	plan, err := remedy.ConfineSystem(facts, request)
	if err != nil {
		return none, err
	}
	var result apply.Result
	switch parts := []txn.Part{plan.Part()}; {
	case len(plan.Changes) == 0:
		result = apply.Result{Writes: []apply.Write{}, Skipped: []txn.Skip{}, Verdict: apply.VerdictNothing}
	case dryRun:
		result, err = apply.PlanReplace(env, parts)
	default:
		result, err = apply.Replace(cmd.Context(), env, parts)
	}
	result.Warnings = slices.Concat(recovered.Warnings, plan.Warnings, result.Warnings)
	result.Skipped = append(slices.Clone(plan.Skipped), result.Skipped...)
	return result, err
}
