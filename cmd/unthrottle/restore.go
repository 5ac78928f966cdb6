package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/txn"
	"github.com/unthrottle/unthrottle/internal/cure/txn/apply"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/text"
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

// inForce finds the path of a target that something is in force for. Its
// container may be gone, so that the journal's names are tried before the
// host's.
func inForce(h *cgroup.Host, env apply.Env, name string) (string, error) {
	all, err := apply.Status(env)
	if err != nil {
		return "", err
	}
	path, err := cgroup.CleanPath(h, name)
	if err != nil {
		path = name // no path, but perhaps a name
	}
	target, err := namedInForce(all, name, path)
	if err != nil || target != "" {
		return target, err
	}
	c, _, err := resolve(h, name)
	return c.Group.Path, err
}

// maxNamed bounds how many targets of one name an error lists.
const maxNamed = 8

// namedInForce finds the target that is meant by an id, a path or a name; "" is
// none. path is the name taken for a path. Several targets of the name are an
// error: which one is meant is not ours to say.
func namedInForce(all []txn.InForce, name, path string) (string, error) {
	var named []string
	for _, f := range all {
		switch {
		case f.ID == name, strings.HasPrefix(name, "/") && f.Target == path:
			return f.Target, nil
		case (f.Name == name || f.Target == path) && !slices.Contains(named, f.Target):
			named = append(named, f.Target)
		}
	}
	if len(named) <= 1 {
		return strings.Join(named, ""), nil
	}
	var list []string
	for _, target := range named[:min(len(named), maxNamed)] {
		list = append(list, fmt.Sprintf("%q", target))
	}
	if more := len(named) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return "", fmt.Errorf("%q is the name of %d targets, %s: give the path of the one that is meant, or its id ('unthrottle status --json')", text.Sanitize(name, 128), len(named), strings.Join(list, ", "))
}
