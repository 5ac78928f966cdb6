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

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/ls"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

type lsFlags struct {
	output, scope, failAbove string
	window                   time.Duration
	watch                    bool
	bound                    float64
}

func newLs() *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		GroupID: groupLook,
		Short:   "List containers, the most stopped first, and whose quota stopped them",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(rejectEmptyFlags(cmd, "scope"), f.check(cmd)); err != nil {
				return err
			}
			h, err := openCgroups()
			if err != nil {
				return err
			}
			return runLs(cmd.Context(), h, f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "json or wide")
	flags.DurationVar(&f.window, "window", time.Second, "how long to look")
	flags.BoolVarP(&f.watch, "watch", "w", false, "look again and again, until interrupted")
	flags.StringVar(&f.failAbove, "fail-above", "", "exit with 1 if a container may be stopped for more than this share of the time, such as 5%")
	flags.StringVar(&f.scope, "scope", "", "only containers at or below this cgroup `PREFIX`")
	return cmd
}

func (f *lsFlags) check(cmd *cobra.Command) error {
	switch f.output {
	case "", "json", "wide":
	default:
		return fmt.Errorf("--output %s: choose json or wide", f.output)
	}
	if err := checkWindow(f.window); err != nil {
		return err
	}
	if !cmd.Flags().Changed("fail-above") {
		f.bound = -1
		return nil
	}
	if f.watch {
		return errors.New("--watch and --fail-above: give one of them; who watches ends it by an interrupt, and no bound decides how")
	}
	var err error
	f.bound, err = parseShare(f.failAbove)
	if err != nil {
		return fmt.Errorf("--fail-above %s: %w", f.failAbove, err)
	}
	return nil
}

// checkWindow bounds the window of observation.
func checkWindow(window time.Duration) error {
	if window < observe.MinWindow || window > time.Hour {
		return fmt.Errorf("--window %v: give a time from %v to 1h", window, observe.MinWindow)
	}
	return nil
}

// parseShare reads a share of the time: "5%" or "0.05".
func parseShare(value string) (float64, error) {
	number, percent := strings.CutSuffix(value, "%")
	v, err := text.ParseDecimal(number)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, errors.New("give a share of the time from 0% to 100%")
	}
	return v, nil
}

func runLs(ctx context.Context, h *cgroup.Host, f lsFlags, out io.Writer) error {
	scope, err := cleanScope(h, f.scope)
	if err != nil {
		return err
	}
	above, notMeasured, looked := 0, 0, false
	for {
		containers, err := list(h, scope)
		if err != nil {
			return err
		}
		if len(containers) == 0 && !f.watch {
			say("no containers and no leaf cgroups%s", below(scope))
		}
		if terminal.Is(os.Stderr) && !looked {
			say("looking at %d cgroups for %v", len(containers), f.window)
		}
		seen, err := observe.Once(ctx, h, containers, f.window)
		if err != nil {
			return err
		}
		looked = true
		if f.watch && terminal.FullScreen(os.Stdout) {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if err := printLs(out, seen, f); err != nil {
			return err
		}
		above, notMeasured = count(seen, f.bound)
		if !f.watch {
			break
		}
	}
	switch {
	case f.bound < 0:
		return nil
	case above > 0:
		return exitWith{exitAboveBound, fmt.Errorf("%d of the containers may be stopped for more than %s of the time", above, f.failAbove)}
	case notMeasured > 0:
		return exitWith{exitNotMeasurable, fmt.Errorf("stopped time of %d containers could not be measured", notMeasured)}
	}
	return nil
}

func printLs(out io.Writer, seen []observe.Observation, f lsFlags) error {
	if f.output == "json" {
		return view.JSON(out, seen)
	}
	width := 0
	if terminal.Bounded(os.Stdout) {
		width = terminal.Width(os.Stdout)
	}
	return view.Write(out, seen, view.Options{Wide: f.output == "wide", Width: width, Color: terminal.Color(os.Stdout), ASCII: terminal.ASCII()})
}

// count tells how many containers are above the bound, and how many could not
// be judged.
func count(seen []observe.Observation, bound float64) (above, notMeasured int) {
	for _, o := range seen {
		is, ok := o.Above(bound)
		switch {
		case !ok:
			notMeasured++
		case is:
			above++
		}
	}
	return above, notMeasured
}

func below(scope string) string {
	if scope == "" {
		return ""
	}
	return " at or below " + text.EscapePath(scope)
}
