package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/workload"
)

// newChild is what the demo starts itself as; it is of no use by hand.
func newChild() *cobra.Command {
	return &cobra.Command{
		Use:                workload.ChildCommand,
		Hidden:             true,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { os.Exit(workload.ChildMain(args)) },
	}
}
