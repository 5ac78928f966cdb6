package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/inside/spin"
	view "github.com/unthrottle/unthrottle/internal/ui/report/inside"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
)

func newInside() *cobra.Command {
	var out output
	var forTime time.Duration
	cmd := &cobra.Command{
		Use:     "inside",
		GroupID: groupLook,
		Short:   "Find the limit of the container that it runs in, without rights or files",
		Long: `Find the limit of the container that it runs in, without rights or files.

For a second a thread on each CPU runs as much as it can: when all of them are
stopped, and when they go on, gives away quota and period. This uses up the
quota of that second. Then each thread looks now and then whether it is late,
for at most 5 % of the limit: how often the program beside it is stopped.

It needs no rights, no cgroup file, no agent and no BPF.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if forTime < spin.MinTime {
				return usage(cmd, "--for %s: a look takes %s at least", plainTime(forTime), plainTime(spin.MinTime))
			}
			found, err := spin.Look(cmd.Context(), forTime)
			if err != nil {
				return exitWith{exitNotMeasurable, err}
			}
			d := view.New(found.Finding, found.Trial, found.Watch)
			if out.json() {
				err = jsonout.Write(cmd.OutOrStdout(), "inside", d)
			} else {
				err = view.Write(cmd.OutOrStdout(), d)
			}
			if err == nil && d.Limited == nil {
				return exitWith{exitNotMeasurable, nil}
			}
			return err
		},
	}
	out.add(cmd)
	lengthVar(cmd, &forTime, 10*time.Second, "")
	return cmd
}
