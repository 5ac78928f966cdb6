package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/jvm"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
	"github.com/unthrottle/unthrottle/internal/txn/holder"
)

// newChildren are hidden commands: this program starts itself as these workloads, and as the holder of the scheduler behind narrow.
func newChildren() []*cobra.Command {
	hidden := func(name string, run func() int) *cobra.Command {
		return &cobra.Command{
			Use:                name,
			Hidden:             true,
			DisableFlagParsing: true,
			Run:                func(*cobra.Command, []string) { os.Exit(run()) },
		}
	}
	return []*cobra.Command{
		hidden(workload.ChildCommand, workload.ChildMain),
		hidden(service.Command, service.Main),
		hidden(loadgen.Command, loadgen.Main),
		hidden(threads.Command, threads.Main),
		hidden(jvm.Command, jvm.Main),
		{
			Use:                holder.Command,
			Hidden:             true,
			DisableFlagParsing: true,
			Run: func(_ *cobra.Command, args []string) {
				os.Exit(holder.Main(args, apply.NewProc("/proc").Self))
			},
		},
	}
}
