package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/forecast"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
)

type forecastFlags struct {
	length                          time.Duration
	out                             output
	all, pools, smallest            bool
	hostLoad, load, objective, pool string
	cpus, repeat                    int
	seed                            uint64
	o                               forecast.Options
}

func newForecast() *cobra.Command {
	var f forecastFlags
	cmd := &cobra.Command{
		Use:     "forecast TARGET|RECORDING",
		GroupID: groupLook,
		Short:   "Say what each remedy would do to a container, before it is applied",
		Long: `Replay what a container did under every remedy: leave it, pin, narrow, burst,
another period, weight, raise; and, modelled, a smaller pool and other shards. A
table of throttled periods, stopped time and latencies, as the host was and with
a full one, with the cost and the margin of error of each. Nothing is changed.

A replay keeps causes: a thread that another of the container wakes waits for
that one; what came from outside comes when it came. A request's latency is from
the arrival of its data to the last write of its answer, a thread's response
from the moment its work came to when it went back to sleep.

RECORDING is a file that 'unthrottle explain --record' wrote. A name that is a
file's and a container's means the file. A container is recorded first: that
needs root (or CAP_BPF and CAP_PERFMON) and a kernel with BTF.

` + howChosen + `

It is marked, and 'fix' would choose it too.`,
		Example: `  sudo unthrottle forecast cart
  unthrottle forecast cart.rec --slo 'p99<20ms' --load 1..3
  sudo unthrottle forecast --all --for 5s`,
		Args: func(cmd *cobra.Command, args []string) error { return f.target(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(rejectEmptyFlags(cmd, "slo", "pool", "load", "host-load"), f.check()); err != nil {
				return err
			}
			if f.all {
				return forecastAll(cmd.Context(), f, cmd.OutOrStdout())
			}
			if err := rejectLength(cmd, args[0]); err != nil {
				return err
			}
			return f.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	lengthVar(cmd, &f.length, 10*time.Second, " to record a container")
	f.out.add(cmd)
	flags.BoolVar(&f.all, "all", false, "every container with a limit, one after the other, and the CPUs that the host gets back")
	flags.BoolVar(&f.smallest, "smallest", false, "also the least CPUs of each remedy with which latency is no worse")
	flags.BoolVar(&f.pools, "pools", false, "also show delay and response of each thread pool")
	shareString(cmd, &f.objective, "slo", "", "")
	flags.StringVar(&f.pool, "pool", "", "with --slo: the thread pool `NAME` whose latency counts (default: "+
		"requests; where none were seen, all pools together)")
	flags.StringVar(&f.hostLoad, "host-load", "90%", "forecast also for a host of which this `SHARE` is busy; 0% leaves that out")
	flags.StringVar(&f.load, "load", "", "look for where each remedy breaks from a `LOAD` to another, such as 1..3 times the arrivals")
	shareCount(cmd, &f.cpus, "cpus", 0, " (default: the limit, rounded up)")
	shareCount(cmd, &f.repeat, "repeat", 5, ": each row, each time with other phases")
	shareSeed(cmd, &f.seed)
	return cmd
}

// target is one, but with --all.
func (f *forecastFlags) target(cmd *cobra.Command, args []string) error {
	if f.all {
		if len(args) > 0 {
			return usage(cmd, "--all is every container with a limit: it takes no TARGET")
		}
		return nil
	}
	return oneTarget(cmd, args)
}

func (f *forecastFlags) run(ctx context.Context, target string, out io.Writer) error {
	l, host, err := f.loadOf(ctx, target)
	if err != nil {
		return err
	}
	done := slowly("forecasting")
	f.o.Each = replays(ctx, !isFile(target))
	made, err := forecast.Make(l, f.o)
	done()
	switch unknown := new(forecast.UnknownPool); {
	case errors.As(err, &unknown):
		return fmt.Errorf("--pool %w", err)
	case err != nil:
		return err
	}
	made, choice := host.choose(ctx, made)
	if f.out.json() {
		return view.JSON(out, made, &choice)
	}
	if err := view.Write(out, made, &choice, view.Options{Pools: f.pools}, outStyle()); err != nil {
		return err
	}
	if !isFile(target) {
		sayNext(f.out, next.Flags{}.Chosen(target, &choice))
	}
	return nil
}

// loadOf reads a recording, or makes one of a container; host is nil for a file.
func (f *forecastFlags) loadOf(ctx context.Context, target string) (l *forecast.Load, host *beside, err error) {
	name := target
	if !isFile(target) {
		dir, err := os.MkdirTemp("", "unthrottle-forecast-")
		if err != nil {
			return nil, nil, fmt.Errorf("no room for the recording: %w", err)
		}
		defer os.RemoveAll(dir)
		name = filepath.Join(dir, "recording")
		var kept error
		if _, host, kept, err = explainLive(ctx, target, explainFlags{length: f.length}, name); err != nil || kept != nil {
			return nil, nil, errors.Join(err, kept)
		}
	}
	file, err := infile.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	l, err = readLoad(file, target)
	return l, host, err
}

// readLoad names the recording in errors.
func readLoad(in io.Reader, name string) (*forecast.Load, error) {
	l, err := forecast.Read(in)
	if err = live.Named(name, err); errors.As(err, new(*forecast.LimitChanged)) {
		err = exitWith{exitNotMeasurable, err}
	}
	return l, err
}

// forecastAll records and forecasts every container with a limit.
func forecastAll(ctx context.Context, f forecastFlags, out io.Writer) error {
	h, err := openCgroups()
	if err != nil {
		return err
	}
	containers, err := list(h, "")
	if err != nil {
		return err
	}
	f.o.Smallest = true
	result := &view.All{}
	refused := new(probe.Unavailable)
	follows := "" // fix of the first container that it can help
	for _, c := range containers {
		limited, err := hasLimit(h, c)
		if err != nil || !limited {
			if err != nil {
				result.NotForecast = append(result.NotForecast, fmt.Sprintf("%s: %v", c.Name, err))
			}
			continue
		}
		l, host, err := f.loadOf(ctx, c.Group.Path)
		var made *forecast.Forecast
		if err == nil {
			done := slowly("forecasting " + text.Sanitize(c.Name, 60))
			f.o.Each = replays(ctx, true)
			made, err = forecast.Make(l, f.o)
			done()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused):
			return err // and so it would be for every other one
		case err != nil:
			result.NotForecast = append(result.NotForecast, err.Error())
		default:
			made, choice := host.choose(ctx, made)
			result.All, result.Choices = append(result.All, made), append(result.Choices, choice)
			if follows == "" {
				follows = next.Flags{}.Chosen(text.EscapePath(c.Group.Path), &choice)
			}
		}
	}
	if f.out.json() {
		return errors.Join(view.AllJSON(out, result), noneMade(result))
	}
	if len(result.All) == 0 && len(result.NotForecast) == 0 {
		say("no container here has a CPU limit: there is nothing to forecast")
		return nil
	}
	if err := view.WriteAll(out, result, outStyle()); err != nil {
		return err
	}
	sayNext(f.out, follows)
	return noneMade(result)
}

// noneMade is the error of --all where there was something to forecast and no forecast could be made.
func noneMade(all *view.All) error {
	if len(all.All) > 0 || len(all.NotForecast) == 0 {
		return nil
	}
	return exitWith{exitNotMeasurable, fmt.Errorf("no forecast could be made of any of %s", text.Count(len(all.NotForecast), "container"))}
}
