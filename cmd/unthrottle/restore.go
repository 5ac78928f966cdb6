package main

import (
	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

func newRestore() *cobra.Command {
	var w writeFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "restore [TARGET]",
		GroupID: groupChange,
		Short:   "Put back everything unthrottle changed and has not yet put back",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := openCgroups()
			if err != nil {
				return err
			}
			env, done, err := w.env(cmd, h)
			if err != nil {
				return err
			}
			defer done()
			if len(args) == 0 {
				removeLeftovers(h, env.Scope)
			}
			selector := apply.Selector{}
			if len(args) == 1 {
				if selector.Target, err = inForce(h, env, args[0]); err != nil {
					return err
				}
			}
			result, err := apply.Restore(cmd.Context(), env, selector)
			return show(cmd, result, err, asJSON, false)
		},
	}
	w.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// inForce finds the path of a target by its name. Names in the journal come first: the
// container may be gone.
func inForce(h *cgroup.Host, env apply.Env, name string) (string, error) {
	all, err := apply.Status(env)
	if err != nil {
		return "", err
	}
	path, err := cgroup.CleanPath(h, name)
	if err != nil {
		path = name // no path, but perhaps a name
	}
	target, err := apply.FindTarget(all, name, path)
	if err != nil || target != "" {
		return target, err
	}
	c, _, err := resolve(h, name)
	return c.Group.Path, err
}
