package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/demo"
	"github.com/unthrottle/unthrottle/report"
	"github.com/unthrottle/unthrottle/topology"
)

func newDemo() *cobra.Command {
	var seconds float64
	var scope string
	var asJSON, ascii, fair bool
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupTry,
		Short:   "Show throttling and its end on this host, in cgroups of its own",
		Long: `Run seed 003's experiment on this host: threads that burn and one that sleeps
for 10 ms, under a CPU quota, with fewer threads, on a cpuset with the quota
kept, and pinned without a quota. Only cgroups of its own are written, and all
of them are removed: whoever else runs on the host is not moved.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "scope"); err != nil {
				return err
			}
			if !(seconds >= demo.MinSeconds && seconds <= demo.MaxSeconds) {
				return fmt.Errorf("--seconds %g: give %g to %g", seconds, demo.MinSeconds, demo.MaxSeconds)
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			o := demo.Options{Host: h, Seconds: seconds, Fair: fair}
			if scope != "" {
				if o.Scope, err = cgroup.CleanPath(h, scope); err != nil {
					return err
				}
			}
			if o.Machine, err = topology.Read(os.DirFS("/sys")); err != nil {
				return exitWith{exitNotMeasurable, err}
			}
			if onTerminal(os.Stderr) {
				progress := report.NewDemoProgress(os.Stderr, ascii)
				o.Progress = progress.Event
				defer progress.Done()
			}
			result, err := demo.Run(cmd.Context(), o)
			if missing := new(demo.NotMeasurable); errors.As(err, &missing) {
				return exitWith{exitNotMeasurable, err}
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), result)
			}
			return report.Demo(cmd.OutOrStdout(), result, report.DemoOptions{Width: terminalWidth(), ASCII: ascii})
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&seconds, "seconds", demo.DefaultSeconds, "how long each of the four arms is measured")
	flags.StringVar(&scope, "scope", "", "make the demo's cgroups below this cgroup `PREFIX`")
	flags.BoolVar(&fair, "fair", false, "leave the demo's cgroup at the ordinary weight: other load then has a say in the figures")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&ascii, "ascii", false, "no bars and boxes beyond ASCII")
	return cmd
}
