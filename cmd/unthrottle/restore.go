package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/apply"
	"github.com/unthrottle/unthrottle/cgroup"
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
			if len(args) == 0 {
				removeLeftovers(h)
			}
			env, done, err := w.env(cmd, h)
			if err != nil {
				return err
			}
			defer done()
			selector := apply.Selector{}
			if len(args) == 1 {
				if selector.Target, err = inForce(h, env, args[0]); err != nil {
					return err
				}
			}
			result, err := apply.Restore(cmd.Context(), env, selector)
			if err == nil && result.Verdict == apply.VerdictNotRestored {
				err = errors.New("not everything could be put back")
			}
			return show(cmd, result, err, asJSON, false)
		},
	}
	w.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// inForce finds the path of a target that something is in force for. Its
// container may be gone, so that the journal's names are tried before the
// host's.
func inForce(h *cgroup.Host, env apply.Env, name string) (string, error) {
	all, err := apply.Status(env)
	if err != nil {
		return "", err
	}
	path, pathErr := cgroup.CleanPath(h, name)
	for _, f := range all {
		if f.Name == name || f.ID == name || pathErr == nil && f.Target == path {
			return f.Target, nil
		}
	}
	c, _, err := resolve(h, name)
	return c.Group.Path, err
}
