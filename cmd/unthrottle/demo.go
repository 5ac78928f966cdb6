package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/experiment/demo"
	view "github.com/unthrottle/unthrottle/internal/ui/report/demo"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
	"github.com/unthrottle/unthrottle/topology"
)

func newDemo() *cobra.Command {
	var measured time.Duration
	var parent string
	var out output
	var ascii, fair, simulated bool
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupTry,
		Short:   "Show throttling and its end on this host, in cgroups of its own",
		Long: `Show throttling on this host: threads that burn CPU and one that sleeps for 10
ms, under a CPU quota, with fewer threads, on a cpuset with the quota kept, and
pinned without a quota. Only cgroups of its own are written, and all of them are
removed. No other process on the host is moved.

Where the host cannot run it, it runs in the simulator, and says so.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(rejectEmptyFlags(cmd, "parent"),
				rejectPairs(cmd, "simulated", "nothing runs on this host then", "parent", "fair")); err != nil {
				return err
			}
			seconds := measured.Seconds()
			if !(seconds >= demo.MinSeconds && seconds <= demo.MaxSeconds) {
				return fmt.Errorf("--for %v: give a time from %v to %v", plainTime(measured), inTime(demo.MinSeconds),
					plainTime(inTime(demo.MaxSeconds)))
			}
			result, err := runDemo(cmd.Context(), demo.Options{Seconds: seconds, Fair: fair}, parent, simulated, ascii)
			if err != nil {
				return err
			}
			if out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "demo", result)
			}
			if err := view.Write(cmd.OutOrStdout(), result, styleOf(ascii)); err != nil {
				return err
			}
			sayNext(out, next.List)
			return nil
		},
	}
	lengthVar(cmd, &measured, inTime(demo.DefaultSeconds), " each of the four variants is measured")
	shareString(cmd, &parent, "parent", "", "")
	shareSwitch(cmd, &fair, "fair", "")
	cmd.Flags().BoolVar(&simulated, "simulated", false, "in the simulator: nothing runs here, and no rights are needed")
	out.add(cmd)
	shareSwitch(cmd, &ascii, "ascii", "")
	return cmd
}

// runDemo runs it for real where the host can and the user did not ask for the simulator.
func runDemo(ctx context.Context, o demo.Options, parent string, simulated, ascii bool) (demo.Result, error) {
	if simulated {
		return demo.Simulated(o.Seconds)
	}
	result, err := realDemo(ctx, o, parent, ascii)
	// --parent asks for this host: a simulation is no answer.
	if missing := new(demo.NotMeasurable); parent == "" && errors.As(err, &missing) {
		say("%s", demo.Instead(err))
		return demo.Simulated(o.Seconds)
	}
	return result, err
}

func realDemo(ctx context.Context, o demo.Options, parent string, ascii bool) (demo.Result, error) {
	var err error
	if o.Host, err = openCgroups(); err != nil {
		return demo.Result{}, &demo.NotMeasurable{What: "no cgroups", WayOut: "run it on Linux with cgroups mounted", Err: err}
	}
	if o.Scope, err = cleanPrefix(o.Host, "parent", parent); err != nil {
		return demo.Result{}, err
	}
	if o.Machine, err = topology.Read(os.DirFS("/sys")); err != nil {
		return demo.Result{}, &demo.NotMeasurable{What: "no CPU topology", WayOut: "mount sysfs on /sys", Err: err}
	}
	progress := view.NewProgress(os.Stderr, terminal.FullScreen(os.Stderr), ascii || terminal.ASCII())
	o.Progress = progress.Event
	defer progress.Done()
	result, err := demo.Run(ctx, o)
	if missing := new(demo.NotMeasurable); errors.As(err, &missing) {
		return result, exitWith{exitNotMeasurable, err}
	}
	return result, err
}
