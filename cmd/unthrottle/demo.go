package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/bench/demo"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	view "github.com/unthrottle/unthrottle/internal/ui/report/demo"
	"github.com/unthrottle/unthrottle/internal/ui/report/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/topology"
)

func newDemo() *cobra.Command {
	var seconds float64
	var scope string
	var asJSON, ascii, fair, simulated bool
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupTry,
		Short:   "Show throttling and its end on this host, in cgroups of its own",
		Long: `Run seed 003's experiment on this host: threads that burn and one that sleeps
for 10 ms, under a CPU quota, with fewer threads, on a cpuset with the quota
kept, and pinned without a quota. Only cgroups of its own are written, and all
of them are removed. No other process on the host is moved.

Where the host cannot run it, it runs in the simulator, and says so.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectEmptyFlags(cmd, "scope"); err != nil {
				return err
			}
			if !(seconds >= demo.MinSeconds && seconds <= demo.MaxSeconds) {
				return fmt.Errorf("--seconds %g: give %g to %g", seconds, demo.MinSeconds, demo.MaxSeconds)
			}
			result, err := runDemo(cmd.Context(), demo.Options{Seconds: seconds, Fair: fair}, scope, simulated, ascii)
			if err != nil {
				return err
			}
			if asJSON {
				return jsonout.Write(cmd.OutOrStdout(), result)
			}
			return view.Write(cmd.OutOrStdout(), result, styleOf(ascii))
		},
	}
	flags := cmd.Flags()
	decimalVar(cmd, &seconds, "seconds", demo.DefaultSeconds, "how long each of the four variants is measured")
	flags.StringVar(&scope, "scope", "", "make the demo's cgroups below this cgroup `PREFIX`")
	flags.BoolVar(&fair, "fair", false, "leave the demo's cgroup at the ordinary weight: other load then has a say in the figures")
	flags.BoolVar(&simulated, "simulated", false, "in the simulator: nothing runs here, and no rights are needed")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&ascii, "ascii", false, "no bars and boxes beyond ASCII")
	cmd.MarkFlagsMutuallyExclusive("simulated", "scope")
	cmd.MarkFlagsMutuallyExclusive("simulated", "fair")
	return cmd
}

// runDemo runs it for real where the host can and the user did not ask for the simulator.
func runDemo(ctx context.Context, o demo.Options, scope string, simulated, ascii bool) (demo.Result, error) {
	if simulated {
		return demo.Simulated(o.Seconds)
	}
	result, err := realDemo(ctx, o, scope, ascii)
	// --scope asks for this host: a simulation is no answer.
	if missing := new(demo.NotMeasurable); scope == "" && errors.As(err, &missing) {
		say("%s", demo.Instead(err))
		return demo.Simulated(o.Seconds)
	}
	return result, err
}

func realDemo(ctx context.Context, o demo.Options, scope string, ascii bool) (demo.Result, error) {
	var err error
	if o.Host, err = openCgroups(); err != nil {
		return demo.Result{}, &demo.NotMeasurable{What: "no cgroups", WayOut: "run it on Linux with cgroups mounted", Err: err}
	}
	if scope != "" {
		if o.Scope, err = cgroup.CleanPath(o.Host, scope); err != nil {
			return demo.Result{}, err
		}
	}
	if o.Machine, err = topology.Read(os.DirFS("/sys")); err != nil {
		return demo.Result{}, &demo.NotMeasurable{What: "no CPU topology", WayOut: "mount sysfs on /sys", Err: err}
	}
	if terminal.Is(os.Stderr) {
		progress := view.NewProgress(os.Stderr, ascii || terminal.ASCII())
		o.Progress = progress.Event
		defer progress.Done()
	}
	result, err := demo.Run(ctx, o)
	if missing := new(demo.NotMeasurable); errors.As(err, &missing) {
		return result, exitWith{exitNotMeasurable, err}
	}
	return result, err
}
