package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/loadgen"
	"github.com/unthrottle/unthrottle/workload"
	"github.com/unthrottle/unthrottle/workload/service"
)

// newChildren are what this program starts itself as; they are of no use by
// hand.
func newChildren() []*cobra.Command {
	hidden := func(name string, run func(args []string) int) *cobra.Command {
		return &cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true,
			Run:                func(_ *cobra.Command, args []string) { os.Exit(run(args)) },
		}
	}
	return []*cobra.Command{
		hidden(workload.ChildCommand, workload.ChildMain),
		hidden(service.Command, func([]string) int { return service.Main() }),
		hidden(loadgen.Command, func([]string) int { return loadgen.Main() }),
	}
}
