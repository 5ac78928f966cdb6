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
	var forTime, trial time.Duration
	cmd := &cobra.Command{
		Use:     "inside",
		GroupID: groupLook,
		Short:   "Find the limit of the container that it runs in, without rights or files",
		Long: `Find the limit of the container that it runs in, without rights or files.

For a second a thread on each CPU runs as much as it can: when all of them are
stopped, and when they go on, gives away quota and period. This uses up the
quota of that second. Then each thread looks now and then whether it is late,
for at most 5 % of the limit: how often the program beside it is stopped.

A second tells periods up to a quarter of one. Where a longer one is in force,
--trial 5s finds it, and uses up the quota of five seconds.

It needs no rights, no cgroup file, no agent and no BPF.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if trial < spin.LeastTrial {
				return usage(cmd, "--trial %s: it takes %s at least", plainTime(trial), plainTime(spin.LeastTrial))
			}
			if least := trial + spin.LeastWatch; forTime < least {
				return usage(cmd, "--for %s: a look with a trial of %s takes %s at least", plainTime(forTime), plainTime(trial), plainTime(least))
			}
			found, err := spin.Look(cmd.Context(), forTime, trial)
			if err != nil {
				return exitWith{exitNotMeasurable, err}
			}
			d := view.New(found.Finding, found.Trial, found.Watch, found.Busiest)
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
	timeVar(cmd, &trial, "trial", time.Second,
		"how `LONG` its threads use up the quota: periods up to a quarter of that are found")
	return cmd
}
