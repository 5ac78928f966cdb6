package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/cure/fix/learn"
	"github.com/unthrottle/unthrottle/internal/experiment/capacity"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	view "github.com/unthrottle/unthrottle/internal/ui/report/bench"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// benchServiceFlags are those of `bench service`.
type benchServiceFlags struct {
	shape, url, slo, errors, html, parent string
	remedies                              []string
	repeat, steps                         int
	length                                time.Duration // of each step
	seed                                  uint64
	quick, fair                           bool
	out                                   output
}

func newBenchService() *cobra.Command {
	var f benchServiceFlags
	cmd := &cobra.Command{
		Use:   "service",
		Short: "The highest load within an objective, under each remedy in turn",
		Long: `Run a real multi-threaded service in a limited cgroup of its own and an
open-loop load generator outside it, and raise the load until the objective is
missed: under the plain quota and under each remedy, interleaved and repeated.

Shapes: pool (interchangeable requests), pools (several competing pools), gc
(stop-the-world collections), mixed (pings and long requests on I/O threads).

With --url it is your own service that is asked, as it is: nothing is changed
about it, and this load is real. Do not point it at what others depend on.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return benchService(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.shape, "shape", "pools", "`SHAPE` of the service: "+strings.Join(capacity.Shapes(), ", "))
	flags.StringVar(&f.url, "url", "", "ask this HTTP service instead (GET `URL`)")
	shareString(cmd, &f.slo, "slo", capacity.DefaultObjective().String(), "")
	flags.StringVar(&f.errors, "errors", "0.1%", "objective: the `SHARE` of requests that may fail")
	flags.StringSliceVar(&f.remedies, "remedies", nil, "`REMEDIES` to compare, quota first (default: all; with --quick quota,burst,pin)")
	flags.BoolVar(&f.quick, "quick", false, "three repeats, four steps of 5 s, three remedies: within five minutes")
	shareCount(cmd, &f.repeat, "repeat", 0, ": the search of each remedy (default 5)")
	flags.IntVar(&f.steps, "steps", 0, "`N` loads that a search tries (default 5)")
	lengthVar(cmd, &f.length, 0, " each load is measured (default 6s)")
	shareSeed(cmd, &f.seed)
	shareString(cmd, &f.parent, "parent", "", "")
	shareSwitch(cmd, &f.fair, "fair", "")
	shareString(cmd, &f.html, "html", "", ", with plots")
	f.out.add(cmd)
	return cmd
}

func benchService(cmd *cobra.Command, f benchServiceFlags) error {
	if err := errors.Join(rejectEmptyFlags(cmd, "url", "slo", "errors", "html", "parent"),
		rejectPairs(cmd, "url", "a service of your own is asked as it is", "shape", "remedies", "parent", "fair")); err != nil {
		return err
	}
	given := cmd.Flags().Changed
	switch {
	case given("repeat") && (f.repeat < capacity.MinRepeats || f.repeat > capacity.MaxRepeats):
		return usage(cmd, "--repeat %d: give %d to %d", f.repeat, capacity.MinRepeats, capacity.MaxRepeats)
	case given("steps") && (f.steps < capacity.MinSteps || f.steps > capacity.MaxSteps):
		return usage(cmd, "--steps %d: give %d to %d", f.steps, capacity.MinSteps, capacity.MaxSteps)
	case given("for") && (f.length < capacity.MinStep || f.length > capacity.MaxStep):
		return usage(cmd, "--for %s: give a time from %s to %s", plainTime(f.length), plainTime(capacity.MinStep),
			plainTime(capacity.MaxStep))
	}
	o := capacity.Options{
		Shape: f.shape, URL: f.url, Objective: capacity.DefaultObjective(), Remedies: f.remedies, Quick: f.quick,
		Repeats: f.repeat, Steps: f.steps, Step: f.length, Fair: f.fair, Seed: f.seed,
	}
	if err := o.Objective.ParseSLO(f.slo); err != nil {
		return usage(cmd, "--slo %v", err)
	}
	if err := o.Objective.ParseErrors(f.errors); err != nil {
		return usage(cmd, "--errors %v", err)
	}
	if f.url == "" {
		h, err := openCgroups()
		if err != nil {
			return err
		}
		o.Host = h
		o.Choose = fixChooses(h)
		if o.Scope, err = cleanPrefix(h, "parent", f.parent); err != nil {
			return err
		}
	}
	// Begun before the measurement: a page that cannot be written is an error now.
	page, err := begin(f.html)
	if err != nil {
		return fmt.Errorf("--html %w", err)
	}
	progress := view.NewProgress(os.Stderr, terminal.FullScreen(os.Stderr), terminal.ASCII())
	o.Progress = progress.Event
	defer progress.Done()
	result, err := capacity.Run(cmd.Context(), o)
	if err != nil {
		page.abandon()
		return notMeasured(err)
	}
	// The text is written first: a full disk loses the page only.
	if f.out.json() {
		err = jsonout.Write(cmd.OutOrStdout(), "bench_service", result)
	} else {
		err = view.Service(cmd.OutOrStdout(), result, outStyle())
	}
	if err := errors.Join(err, page.write(pageIsIn,
		func(w io.Writer) error { return view.ServiceHTML(w, result, thisHost()) })); err != nil {
		return err
	}
	sayNext(f.out, next.List)
	return nil
}

// notMeasured gives an error its exit code: 3 where nothing could be measured, 1 where
// no load met the objective.
func notMeasured(err error) error {
	noSandbox, saturated := new(sandbox.NotMeasurable), new(capacity.Saturated)
	if errors.As(err, &noSandbox) || errors.As(err, &saturated) {
		return exitWith{exitNotMeasurable, err}
	}
	if unmet := new(capacity.Unmet); errors.As(err, &unmet) {
		return exitWith{exitAboveBound, err}
	}
	return err
}

// fixChooses records a cgroup of the bench, and then says what fix chooses for it.
func fixChooses(h *cgroup.Host) func(context.Context, cgroup.Group, time.Duration) (func(context.Context) (capacity.Chosen, error), error) {
	return func(ctx context.Context, group cgroup.Group, d time.Duration) (func(context.Context) (capacity.Chosen, error), error) {
		choice, err := learn.Host{Cgroups: h, Root: infile.Root("/")}.Choice(ctx, group, d)
		return func(ctx context.Context) (capacity.Chosen, error) {
			setting, err := choice(ctx)
			return capacity.Chosen(setting), err
		}, err
	}
}
