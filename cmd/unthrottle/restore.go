package main

import (
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

func newRestore() *cobra.Command {
	var w writeFlags
	var out output
	var dryRun bool
	cmd := &cobra.Command{
		Use:     "restore [TARGET]",
		GroupID: groupChange,
		Short:   "Put back everything unthrottle changed and has not yet put back",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "one TARGET at most is wanted, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.mustExist(cmd); err != nil {
				return err
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			env, done, err := w.env(cmd, h)
			if err != nil {
				return err
			}
			defer done()
			w.sayWhose(cmd)
			if len(args) == 0 && !dryRun {
				removeLeftovers(h, env.Scope)
			}
			selector := apply.Selector{}
			if len(args) == 1 {
				if selector.Target, err = inForce(h, env, args[0]); err != nil {
					return err
				}
			}
			do := apply.Restore
			if dryRun {
				do = apply.PlanRestore
			}
			result, err := do(cmd.Context(), env, selector)
			if err := show(cmd, result, err, out, dryRun); err != nil {
				return err
			}
			if dryRun && len(result.Writes) > 0 {
				sayNext(out, forReal(cmd, args))
			} else {
				sayNext(out, w.next().Status())
			}
			return nil
		},
	}
	w.add(cmd)
	out.add(cmd)
	shareSwitch(cmd, &dryRun, "dry-run", "")
	return cmd
}

// inForce finds the path of a target by its name. Names in the journal come first: the
// container may be gone.
func inForce(h *cgroup.Host, env apply.Env, name string) (string, error) {
	transactions, err := apply.Status(env)
	if err != nil {
		return "", err
	}
	path, err := cgroup.CleanPath(h, name)
	if err != nil {
		path = name // no path, but perhaps a name
	}
	target, err := apply.FindTarget(transactions, name, path)
	if err != nil || target != "" {
		return target, err
	}
	c, _, err := resolve(h, name)
	return c.Group.Path, err
}
