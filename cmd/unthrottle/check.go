package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/features"
	view "github.com/unthrottle/unthrottle/internal/ui/report/check"
	"github.com/unthrottle/unthrottle/internal/ui/report/jsonout"
)

func newCheck() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "check",
		GroupID: groupLook,
		Short:   "Show what this host offers and what unthrottle can do here",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openCgroups()
			if err != nil {
				return err
			}
			r := features.Gather(h, os.DirFS("/"), os.Geteuid())
			// The last row, about restore, stays the last.
			r.Can = slices.Insert(r.Can, len(r.Can)-1, remedy.Abilities(r)...)
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), r)
			}
			return view.Write(cmd.OutOrStdout(), r, outStyle())
		},
	}
	out.add(cmd)
	return cmd
}
