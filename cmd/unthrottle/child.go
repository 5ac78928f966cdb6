package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/jvm"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
)

// newChildren are hidden commands: this program starts itself as these workloads.
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
		hidden(threads.Command, func([]string) int { return threads.Main() }),
		hidden(jvm.Command, func([]string) int { return jvm.Main() }),
	}
}
