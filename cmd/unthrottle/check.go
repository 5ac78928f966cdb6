package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
	view "github.com/unthrottle/unthrottle/internal/ui/report/check"
)

func newCheck() *cobra.Command {
	var asJSON bool
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
			if asJSON {
				return printJSON(cmd.OutOrStdout(), r)
			}
			return view.Write(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
