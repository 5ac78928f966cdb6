package main

import "github.com/spf13/cobra"

// newBench groups the measurements that take minutes.
func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: groupTry,
		Short:   "Measure what remedies are worth, in cgroups of its own",
		Args:    subcommandsOnly,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchService(), newBenchLatency(), newBenchFibtest())
	return cmd
}
