package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	view "github.com/unthrottle/unthrottle/internal/ui/report/ls"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/next"
	"github.com/unthrottle/unthrottle/internal/ui/terminal"
)

type lsFlags struct {
	out    output
	below  string
	length time.Duration
	watch  bool
	bound  bound
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
			if err := errors.Join(rejectEmptyFlags(cmd, "below"), f.check()); err != nil {
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
	f.out.add(cmd)
	lengthVar(cmd, &f.length, time.Second, " to look")
	flags.BoolVarP(&f.watch, "watch", "w", false, "look again and again, until interrupted")
	boundVar(cmd, &f.bound, "", ": exit with 1 if a container may be, such as 5%")
	shareString(cmd, &f.below, "below", "", "")
	return cmd
}

func (f *lsFlags) check() error {
	if f.watch && f.bound.share >= 0 {
		return errors.New("--watch and --bound: give one of them; an interrupt ends --watch, and no bound decides how")
	}
	return checkWindow(f.length)
}

// checkWindow bounds the window of observation.
func checkWindow(window time.Duration) error {
	if window < observe.MinWindow || window > time.Hour {
		return fmt.Errorf("--for %v: give a time from %v to 1h", plainTime(window), observe.MinWindow)
	}
	return nil
}

func runLs(ctx context.Context, h *cgroup.Host, f lsFlags, out io.Writer) error {
	prefix, err := existingPrefix(h, "below", f.below)
	if err != nil {
		return err
	}
	above, notMeasured, looked := 0, 0, false
	for {
		containers, err := list(h, prefix)
		if err != nil {
			return err
		}
		if len(containers) == 0 && !f.watch {
			say("no containers and no leaf cgroups%s", below(prefix))
		}
		if terminal.Is(os.Stderr) && !looked {
			say("looking at %s for %s", text.Count(len(containers), "cgroup"), text.Duration(f.length))
		}
		seen, err := observe.Once(ctx, h, containers, f.length)
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
		above, notMeasured = count(seen, f.bound.share)
		if !f.watch {
			if worst := mostStopped(seen); worst != "" {
				sayNext(f.out, next.Explain(worst))
			}
			break
		}
	}
	switch {
	case f.bound.share < 0:
		return nil
	case above > 0:
		return exitWith{exitAboveBound, fmt.Errorf("%d of the containers may be stopped for more than %s of the time", above, f.bound.text)}
	case notMeasured > 0:
		return exitWith{exitNotMeasurable, fmt.Errorf("stopped time of %d containers could not be measured", notMeasured)}
	}
	return nil
}

func printLs(out io.Writer, seen []observe.Observation, f lsFlags) error {
	if f.out.json() {
		return view.JSON(out, seen)
	}
	width := 0
	if terminal.Bounded(os.Stdout) {
		width = terminal.Width(os.Stdout)
	}
	return view.Write(out, seen, view.Options{Wide: f.out.wide(), Width: width, Color: terminal.Color(os.Stdout), ASCII: terminal.ASCII()})
}

// mostStopped is the path of the container that may be stopped for longest, "" if none is for a hundredth of the time.
func mostStopped(seen []observe.Observation) string {
	var longest time.Duration
	path := ""
	for _, o := range seen {
		if is, ok := o.Above(0.01); ok && is && o.StoppedHigh != nil && *o.StoppedHigh > longest {
			longest, path = *o.StoppedHigh, text.EscapePath(o.Container.Group.Path)
		}
	}
	return path
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

func below(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " at or below " + text.EscapePath(prefix)
}
