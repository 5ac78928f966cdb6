package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/experiment/fibtest"
	"github.com/unthrottle/unthrottle/internal/experiment/latency"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	view "github.com/unthrottle/unthrottle/internal/ui/report/bench"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

// benchRunFlags are those of benches that repeat short runs.
type benchRunFlags struct {
	length time.Duration // of each run
	repeat int
	parent string
	fair   bool
	out    output
}

func (f *benchRunFlags) add(cmd *cobra.Command) {
	lengthVar(cmd, &f.length, f.length, " each run is measured")
	shareCount(cmd, &f.repeat, "repeat", f.repeat, ": rounds, interleaved")
	shareString(cmd, &f.parent, "parent", "", "")
	shareSwitch(cmd, &f.fair, "fair", "")
	f.out.add(cmd)
}

// inTime is a number of seconds as a length of time.
func inTime(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// open checks the flags and finds the host's cgroups and usable CPUs.
func (f *benchRunFlags) open(cmd *cobra.Command, least, most float64, maxRepeat int) (h *cgroup.Host, scope string, cpus int, err error) {
	switch err := rejectEmptyFlags(cmd, "parent"); {
	case err != nil:
		return nil, "", 0, err
	case f.length < inTime(least) || f.length > inTime(most):
		return nil, "", 0, fmt.Errorf("--for %v: give a time from %v to %v", plainTime(f.length), inTime(least), plainTime(inTime(most)))
	case f.repeat < 1 || f.repeat > maxRepeat:
		return nil, "", 0, fmt.Errorf("--repeat %d: give 1 to %d", f.repeat, maxRepeat)
	}
	if h, err = openCgroups(); err != nil {
		return nil, "", 0, err
	}
	if scope, err = cleanPrefix(h, "parent", f.parent); err != nil {
		return nil, "", 0, err
	}
	usable, err := sandbox.Usable(h, scope)
	return h, scope, usable.Size(), notMeasurable(err)
}

// notMeasurable gives the exit code 3 to an experiment that this host cannot run.
func notMeasurable(err error) error {
	if missing := new(sandbox.NotMeasurable); errors.As(err, &missing) {
		return exitWith{exitNotMeasurable, err}
	}
	return err
}

// doing tells a user which run is under way: each on a terminal, once a minute elsewhere. done ends it.
func doing(what string) (said func(string), done func()) {
	if terminal.Is(os.Stderr) {
		return func(text string) { say("%s", text) }, func() {}
	}
	m := progress.NewMinutely(os.Stderr, what)
	return func(text string) { m.Draw(0, 0, text) }, m.Done
}

func newBenchLatency() *cobra.Command {
	f := benchRunFlags{length: inTime(latency.DefaultSeconds), repeat: latency.DefaultRepeat}
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "How long a sleep of 10 ms takes beside threads that burn, under each remedy",
		Long: `Run the demo's threads under each remedy in turn, round after round: threads
that burn CPU and one that sleeps 10 ms, under a plain quota, with a burst, over
a short period, with a raised limit, without one, and pinned.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, scope, cpus, err := f.open(cmd, latency.MinSeconds, latency.MaxSeconds, latency.MaxRepeat)
			if err != nil {
				return err
			}
			said, done := doing("bench latency")
			defer done()
			r, err := latency.Compare(cmd.Context(), latency.Options{
				Host: h, CPUs: cpus, Seconds: f.length.Seconds(), Repeat: f.repeat, Scope: scope, Fair: f.fair, Progress: said,
			})
			if err != nil {
				return notMeasurable(err)
			}
			if f.out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "bench_latency", r)
			}
			if err := view.Latency(cmd.OutOrStdout(), r, outStyle()); err != nil {
				return err
			}
			sayNext(f.out, next.List)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func newBenchFibtest() *cobra.Command {
	f := benchRunFlags{length: inTime(fibtest.DefaultSeconds), repeat: fibtest.DefaultRepeat}
	cmd := &cobra.Command{
		Use:   "fibtest",
		Short: "Which behaviour this kernel has: does unused quota of a CPU expire?",
		Long: `Run a container that loses quota on some kernels: one thread that burns and, on
every other CPU, one that runs for a moment and sleeps, under a small quota.
From 4.18 to 5.3 the kernel let what a CPU had left expire, and such a container
could not use its quota. Distributions carry fault and fix back, so versions do
not tell.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, scope, cpus, err := f.open(cmd, fibtest.MinSeconds, fibtest.MaxSeconds, fibtest.MaxRepeat)
			if err != nil {
				return err
			}
			said, done := doing("bench fibtest")
			defer done()
			r, err := fibtest.Test(cmd.Context(), fibtest.Options{
				Host: h, CPUs: cpus, Seconds: f.length.Seconds(), Repeat: f.repeat, Scope: scope, Fair: f.fair, Progress: said,
			})
			if err != nil {
				return notMeasurable(err)
			}
			if f.out.json() {
				return jsonout.Write(cmd.OutOrStdout(), "bench_fibtest", r)
			}
			if err := view.Fibtest(cmd.OutOrStdout(), r, outStyle()); err != nil {
				return err
			}
			sayNext(f.out, next.List)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
